"""SciPy's linear filter without the rest of scipy.signal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nephoscope.stats.scipy_extensions import compiled
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


def _compiled() -> Any:
    return compiled("signal", "_sigtools", "_linear_filter")
