"""Rank tests and the shifts that belong to them: what one outlier cannot overturn.

Sources: Mann & Whitney 1947; Hodges & Lehmann 1963; Wilcoxon 1945; Brunner & Munzel 2000.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from nephoscope.core.records import dataclass
from nephoscope.stats.statistics.dependence import midranks
from nephoscope.stats.statistics.distributions import normal_quantile
from nephoscope.stats.statistics.means import two_sided_p
from nephoscope.stats.statistics.pair_order import order_of_differences, order_of_means
from nephoscope.stats.statistics.values import Array

EXACT_PAIRS = 400  # 20 against 20; counts stay below 2**53
EXACT_SIGNED = 60
ALL_PAIRS = 1_000_000  # beyond, order statistics are found by bisection instead of sorting


@dataclass(frozen=True, slots=True)
class RankTest:
    """statistic: U of b over a, or W+; p two-sided; p_greater small when b tends to be larger."""

    statistic: float
    p: float
    p_greater: float
    p_less: float


@dataclass(frozen=True, slots=True)
class Shift:
    """A location shift with its interval; low and high are None when n is too small for one.

    too_wide: the interval reaches far beyond the data (`reach`): only what it excludes counts.
    """

    value: float
    low: float | None
    high: float | None
    too_wide: bool = False

    @property
    def excludes_zero(self) -> bool:
        """Returns whether the interval lies on one side of zero."""
        return self.low is not None and self.high is not None and self.low * self.high > 0

    @property
    def without_wide(self) -> Shift:
        """The shift without an interval that is too wide."""
        return Shift(self.value, None, None) if self.too_wide else self

    def widened(self, factor: float) -> Shift:
        """The shift with both bounds so many times as far from its value."""
        if factor == 1 or self.low is None or self.high is None:
            return self
        low, high = (self.value + factor * (end - self.value) for end in (self.low, self.high))
        return Shift(self.value, low, high)


def mann_whitney(a: Array, b: Array) -> RankTest:
    """Mann and Whitney's test; U counts the pairs in which b is larger, ties half.

    Exact without ties up to 20 against 20, else normal with tie and continuity correction.
    """
    pooled = np.concatenate([a, b])
    m, n = a.size, b.size
    u = float(midranks(pooled)[m:].sum() - n * (n + 1) / 2)
    _, ties = np.unique(pooled, return_counts=True)
    if m * n <= EXACT_PAIRS and np.all(ties == 1):
        at_most = _u_law(m, n)
        less, greater = float(at_most[round(u)]), float(at_most[round(m * n - u)])
        return RankTest(u, min(1.0, 2 * min(less, greater)), greater, less)
    total = m + n
    variance = m * n / 12 * (total + 1 - float(np.sum(ties**3 - ties)) / (total * (total - 1)))
    return _normal_test(u, m * n / 2, variance)


def _normal_test(statistic: float, mean: float, variance: float) -> RankTest:
    from scipy.special import ndtr

    if variance <= 0:
        return RankTest(statistic, 1.0, 1.0, 1.0)
    deviation, sd = statistic - mean, math.sqrt(variance)
    two = float(2 * ndtr(-max(0.0, abs(deviation) - 0.5) / sd))
    greater, less = ndtr(-(deviation - 0.5) / sd), ndtr((deviation + 0.5) / sd)
    return RankTest(statistic, min(1.0, two), float(greater), float(less))


@lru_cache(maxsize=512)
def _u_law(m: int, n: int) -> Array:
    """P(U <= u) for u = 0 … mn: the Gaussian binomial's coefficients, summed."""
    counts = np.zeros(m * n + 1)
    counts[0] = 1
    for i in range(1, n + 1):
        if m + i <= m * n:
            counts[m + i :] -= counts[: -(m + i)].copy()  # times (1 - x^(m+i))
        for u in range(i, m * n + 1):  # over (1 - x^i)
            counts[u] += counts[u - i]
    return np.asarray(np.cumsum(counts) / math.comb(m + n, n))


def brunner_munzel(a: Array, b: Array) -> float | None:
    """Two-sided p of Brunner and Munzel's test; None for single values and without any overlap."""
    if min(a.size, b.size) < 2:
        return None
    p_hat, error, df = _superiority(np.sort(a), np.sort(b))
    return two_sided_p(p_hat - 0.5, error, df) if error else None


def _superiority(a: Array, b: Array) -> tuple[float, float, float]:
    """P(b > a) + P(b = a) / 2, its standard error from placements, and degrees of freedom.

    a, b: ascending.
    """
    over_b, over_a = _placements(a, b), _placements(b, a)
    p_hat = float(over_a.sum()) / b.size
    from_a, from_b = over_b - (1 - p_hat), over_a - p_hat
    va = float(from_a @ from_a) / (a.size - 1) / a.size
    vb = float(from_b @ from_b) / (b.size - 1) / b.size
    if va + vb == 0:
        return p_hat, 0.0, math.inf
    df = (va + vb) ** 2 / (va**2 / (a.size - 1) + vb**2 / (b.size - 1))
    return p_hat, math.sqrt(va + vb), df


def _placements(values: Array, ordered: Array) -> Array:
    """The share of an ascending sample below each value; ties count half."""
    below, upto = (ordered.searchsorted(values, side=side) for side in ("left", "right"))
    return np.asarray((below + upto) / (2 * ordered.size))


def hodges_lehmann(a: Array, b: Array, confidence: float) -> Shift:
    """Median of all differences b - a, between its k-th smallest and k-th largest.

    k = floor(mn/2 - z sqrt(mn(m+n+1)/12)), which holds for equal spreads alone.
    """
    m, n = a.size, b.size
    pick = _differences(np.sort(a), np.sort(b))
    total = m * n
    centre = (pick((total + 1) // 2) + pick(total // 2 + 1)) / 2
    z = normal_quantile((1 + confidence) / 2)
    k = math.floor(total / 2 - z * math.sqrt(total * (m + n + 1) / 12))
    if k < 1:
        return Shift(centre, None, None)
    return Shift(centre, pick(k), pick(total + 1 - k))


class SafeShift:
    """The Hodges-Lehmann shift, with the shifts that Brunner and Munzel's test does not reject.

    The test estimates the spread of each side, so that the interval covers as often as it says
    with unequal ones too. Its p-values are kept: the levels of one comparison need the same.
    """

    def __init__(self, a: Array, b: Array) -> None:
        self._a, self._b = np.sort(a), np.sort(b)
        self._pick = _differences(self._a, self._b)
        self._total = total = a.size * b.size
        self.value = (self._pick((total + 1) // 2) + self._pick(total // 2 + 1)) / 2
        size = a.size + b.size
        logs = [math.lgamma(count + 1) for count in (a.size, b.size, size)]
        self._few = (size / (size - 1)) ** 0.25  # fitted: few values show too little spread
        self._of_separation = 2 * math.exp(logs[0] + logs[1] - logs[2])
        self._p = lru_cache(maxsize=None)(self._p_between)

    def __call__(self, confidence: float) -> Shift:
        """Returns the shift; without bounds where even complete separation is too likely."""
        alpha = 1 - confidence
        if min(self._a.size, self._b.size) < 2 or self._of_separation > alpha * (1 + 1e-9):
            return Shift(self.value, None, None)
        below = range(1, self._total // 2 + 1)
        low = bisect_right(below, alpha, key=self._p)
        high = bisect_right(below, alpha, key=lambda k: self._p(self._total - k))
        last = len(below) - 1
        return Shift(
            self.value,
            self._pick(below[min(low, last)]),
            self._pick(self._total + 1 - below[min(high, last)]),
        )

    def _p_between(self, k: int) -> float:
        """The p-value of the shifts between the k-th difference and the next."""
        shift = (self._pick(k) + self._pick(k + 1)) / 2
        p_hat, error, df = _superiority(self._a, self._b - shift)
        return two_sided_p(p_hat - 0.5, error * self._few, df)


def _differences(a: Array, b: Array) -> Callable[[int], float]:
    """Gives k -> the k-th smallest of all b - a (1-based), both sorted."""
    if a.size * b.size <= ALL_PAIRS:
        ordered = np.sort(np.subtract.outer(b, a).ravel())
        return lambda k: float(ordered[k - 1])

    return order_of_differences(a, b)


def signed_rank(differences: Array) -> RankTest:
    """Wilcoxon's signed-rank test that paired differences are symmetric about zero.

    Zero differences are left out. Exact given the ties (mid-ranks) up to 60 pairs, else normal.
    Magnitudes equal to 1e-9 of the largest count as ties: 10.5/10 and 15.75/15 differ by rounding.
    """
    d = differences[differences != 0]
    if not d.size:
        return RankTest(0.0, 1.0, 1.0, 1.0)
    size = np.abs(d)
    step = float(size.max()) * 1e-9
    ranks = midranks(np.round(size / step))
    w = float(ranks[d > 0].sum())
    if d.size > EXACT_SIGNED:
        return _normal_test(w, float(ranks.sum()) / 2, float(np.sum(ranks**2)) / 4)
    at_most = _signed_law(tuple(np.round(2 * ranks).astype(int).tolist()))
    doubled = round(2 * w)
    less, greater = float(at_most[doubled]), float(at_most[len(at_most) - 1 - doubled])
    return RankTest(w, min(1.0, 2 * min(less, greater)), greater, less)


@lru_cache(maxsize=512)
def _signed_law(doubled_ranks: tuple[int, ...]) -> Array:
    """P(2 W+ <= w) for w = 0 … sum, each rank positive or negative by a fair coin."""
    chance = np.zeros(sum(doubled_ranks) + 1)
    chance[0] = 1
    for rank in sorted(doubled_ranks):
        moved = np.zeros_like(chance)
        moved[rank:] = chance[: chance.size - rank]
        chance = (chance + moved) / 2
    return np.asarray(np.cumsum(chance))


def one_sample_shift(differences: Array, confidence: float) -> Shift:
    """Hodges-Lehmann centre of paired differences with the signed-rank interval.

    The k-th smallest and largest of the Walsh averages; k by the exact law up to 60 pairs. There
    is no 95 % interval below 6 pairs.
    """
    d = np.sort(differences)
    n = d.size
    total = n * (n + 1) // 2
    pick = _walsh(d)
    centre = (pick((total + 1) // 2) + pick(total // 2 + 1)) / 2
    if n <= EXACT_SIGNED:
        at_most = _signed_law(tuple(range(2, 2 * n + 1, 2)))[::2]
        k = int(np.searchsorted(at_most, (1 - confidence) / 2, side="right"))
    else:
        sd = math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
        k = math.floor(total / 2 - normal_quantile((1 + confidence) / 2) * sd)
    if k < 1:
        return Shift(centre, None, None)
    return Shift(centre, pick(k), pick(total + 1 - k))


def _walsh(d: Array) -> Callable[[int], float]:
    """Gives k -> the k-th smallest of all (d_i + d_j) / 2 with i <= j (1-based), d sorted."""
    if d.size**2 <= ALL_PAIRS:
        i, j = np.triu_indices(d.size)
        ordered = np.sort((d[i] + d[j]) / 2)
        return lambda k: float(ordered[k - 1])

    return order_of_means(d)
