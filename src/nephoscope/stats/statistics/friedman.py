"""Do several alternatives differ over many blocks? Friedman's test (1937)."""

from __future__ import annotations

import numpy as np

from nephoscope.core.records import dataclass
from nephoscope.stats.statistics.dependence import midranks
from nephoscope.stats.statistics.values import Array, Refused


@dataclass(frozen=True, slots=True)
class FriedmanTest:
    """Friedman's test. mean_ranks: one an alternative, 1 is the lowest value.

    chi_square: corrected for ties; 0 with p = 1 where no block tells alternatives apart.
    """

    chi_square: float
    df: int
    p: float
    blocks: int
    mean_ranks: tuple[float, ...]


def mid_ranks(rows: Array) -> Array:
    """Returns the ranks along the last axis, from 1; equal values share their mean rank."""
    return np.apply_along_axis(midranks, -1, rows)


def friedman(rows: Array) -> FriedmanTest:
    """Tests whether the columns differ; rows: shape (blocks, alternatives), at least 2 of each."""
    from scipy.special import chdtrc

    if rows.ndim != 2 or min(rows.shape) < 2 or not np.all(np.isfinite(rows)):
        raise Refused("Friedman's test needs at least 2 blocks and 2 alternatives without gaps.")
    blocks, k = rows.shape
    ranks = mid_ranks(rows)
    means = ranks.mean(axis=0)
    # Equals 12 / (k (k + 1)) times the squares without ties, and corrects for them.
    spread = float(((ranks - (k + 1) / 2) ** 2).sum()) / (blocks * (k - 1))
    squares = blocks * float(((means - (k + 1) / 2) ** 2).sum())
    chi_square = squares / spread if spread else 0.0
    p = float(chdtrc(k - 1, chi_square))
    return FriedmanTest(chi_square, k - 1, p, blocks, tuple(map(float, means)))
