"""SciPy's linear filter without the rest of scipy.signal, whose import takes half a second.

The filter is one extension module of that package; where it cannot be loaded alone, the package is
imported as usual.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any

import numpy as np

from nephoscope.stats.statistics.values import Array


def linear_filter(
    numerator: Sequence[float] | Array,
    denominator: Sequence[float] | Array,
    columns: Array,
    state: Array | None = None,
) -> Array:
    """Returns `scipy.signal.lfilter` along the first axis, to the last bit.

    denominator: its first coefficient is 1. state: initial one, shape (order, …).
    """
    if len(denominator) == 1:
        points = len(columns)
        return np.apply_along_axis(lambda own: np.convolve(numerator, own)[:points], 0, columns)
    filtered = _compiled()
    if filtered is None:
        from scipy.signal import lfilter

        out = lfilter(numerator, denominator, columns, axis=0, zi=state)
        return np.asarray(out if state is None else out[0])
    coefficients = np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float)
    if state is None:
        return np.asarray(filtered(*coefficients, columns, 0))
    return np.asarray(filtered(*coefficients, columns, 0, state)[0])


@cache
def _compiled() -> Any:
    """Returns the filter of the extension module; None where there is none of that name."""
    package = find_spec("scipy")
    if package is None or package.origin is None:
        return None
    folder = Path(package.origin).parent / "signal"
    spec = FileFinder(str(folder), (ExtensionFileLoader, EXTENSION_SUFFIXES)).find_spec("_sigtools")
    if spec is None or spec.loader is None:
        return None
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:
        return None
    return getattr(module, "_linear_filter", None)
