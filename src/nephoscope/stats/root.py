"""Brent's method as of SciPy, without the rest of scipy.optimize."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nephoscope.stats.scipy_extensions import compiled

_TOLERANCE, _RELATIVE_TOLERANCE, _ITERATIONS = 2e-12, 4 * 2.0**-52, 100
"""Defaults of SciPy."""


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Returns `scipy.optimize.brentq` of a function that changes its sign, to the last bit.

    Raises ValueError where it does not change its sign between low and high.
    """
    brentq = _compiled()
    if brentq is None:
        from scipy.optimize import brentq as imported

        return float(imported(function, low, high))
    limits = _TOLERANCE, _RELATIVE_TOLERANCE, _ITERATIONS
    return float(brentq(function, low, high, *limits, (), False, True))


def _compiled() -> Any:
    return compiled("optimize", "_zeros", "_brentq")
