"""Series whose truth is known: what the coverage of intervals is tested with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def ar1(rng: np.random.Generator, rows: int, n: int, rho: float) -> Array:
    """Returns stationary first-order autoregressions of unit variance, shape (rows, n)."""
    series = rng.normal(0, 1, (rows, n))
    for i in range(1, n):
        series[:, i] = rho * series[:, i - 1] + np.sqrt(1 - rho**2) * series[:, i]
    return series
