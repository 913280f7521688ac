"""Rank tests and the shifts that belong to them: what one outlier cannot overturn.

Sources: Mann & Whitney 1947; Hodges & Lehmann 1963; Wilcoxon 1945; Brunner & Munzel 2000.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nephoscope.analysis.statistics.dependence import midranks
from nephoscope.analysis.statistics.distributions import normal_quantile
from nephoscope.analysis.statistics.values import Array

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
    """A location shift with its interval; low and high are None when n is too small for one."""

    value: float
    low: float | None
    high: float | None


def mann_whitney(a: Array, b: Array) -> RankTest:
    """Mann and Whitney's test; U counts the pairs in which b is larger, ties half.

    Exact without ties up to 20 against 20, else normal with tie and continuity correction.
    """
    both = np.concatenate([a, b])
    m, n = a.size, b.size
    u = float(midranks(both)[m:].sum() - n * (n + 1) / 2)
    _, ties = np.unique(both, return_counts=True)
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
    from scipy.special import stdtr

    if min(a.size, b.size) < 2:
        return None
    p_hat, error, df = _superiority(a, b)
    if error == 0:
        return None
    return float(2 * stdtr(df, -abs(p_hat - 0.5) / error))


def _superiority(a: Array, b: Array) -> tuple[float, float, float]:
    """P(b > a) + P(b = a) / 2, its standard error from placements, and degrees of freedom."""
    m, n = a.size, b.size
    ranks = midranks(np.concatenate([a, b]))
    over_b = (ranks[:m] - midranks(a)) / n  # share of b below each a
    over_a = (ranks[m:] - midranks(b)) / m
    va, vb = float(np.var(over_b, ddof=1)) / m, float(np.var(over_a, ddof=1)) / n
    if va + vb == 0:
        return float(over_a.mean()), 0.0, math.inf
    df = (va + vb) ** 2 / (va**2 / (m - 1) + vb**2 / (n - 1))
    return float(over_a.mean()), math.sqrt(va + vb), df


def hodges_lehmann(
    a: Array,
    b: Array,
    confidence: float,
    *,
    widening: tuple[float, float] = (1.0, 1.0),
    unequal_spread: bool = False,
) -> Shift:
    """Median of all differences b - a, between its k-th smallest and k-th largest.

    k = floor(mn/2 - z sqrt(mn(m+n+1)/12)). unequal_spread: k is then the smaller of that and the
    one with the variance estimated from placements after alignment, since the first is too large
    when the noisier side has fewer repetitions; it never leaves the range of the differences.
    widening: how many times dependence widens the interval of the mean of each side; the bounds
    move away from the centre as far as both together require.
    """
    m, n = a.size, b.size
    pick = _differences(np.sort(a), np.sort(b))
    total = m * n
    centre = (pick((total + 1) // 2) + pick(total // 2 + 1)) / 2
    z = normal_quantile((1 + confidence) / 2)
    k = math.floor(total / 2 - z * math.sqrt(total * (m + n + 1) / 12))
    if k < 1:
        return Shift(centre, None, None)
    if unequal_spread:
        from scipy.special import stdtrit

        _, error, df = _superiority(a, b - centre)
        if error > 0:
            t = float(stdtrit(df, (1 + confidence) / 2))
            k = max(1, min(k, math.floor(total * (0.5 - t * error))))
    factor = _joint_widening(a, b, widening)
    return _widened(Shift(centre, pick(k), pick(total + 1 - k)), factor)


def _joint_widening(a: Array, b: Array, widening: tuple[float, float]) -> float:
    """By how much the dependence of both sides together widens the interval of their shift.

    Each side counts by its part of the variance, taken from the mean deviation from its median.
    The power allows for two estimates that are rarely both too small; it is 1 where one side
    makes up all of the variance, and 1/2 where both are alike.
    """
    parts = np.array(
        [float(np.mean(np.abs(side - np.median(side)))) ** 2 / side.size for side in (a, b)]
    )
    shares = parts / parts.sum() if parts.sum() else np.array([0.5, 0.5])
    raised = float(shares @ np.square(widening))
    return float(raised ** (0.5 - float(np.prod(shares))))


def _widened(shift: Shift, factor: float) -> Shift:
    """The shift with both bounds so many times as far from its value."""
    if factor == 1 or shift.low is None or shift.high is None:
        return shift
    low, high = (shift.value + factor * (end - shift.value) for end in (shift.low, shift.high))
    return Shift(shift.value, low, high)


def _differences(a: Array, b: Array) -> Callable[[int], float]:
    """Gives k -> the k-th smallest of all b - a (1-based), both sorted."""
    if a.size * b.size <= ALL_PAIRS:
        ordered = np.sort(np.subtract.outer(b, a).ravel())
        return lambda k: float(ordered[k - 1])

    def count(x: float) -> int:
        return int(np.searchsorted(b, a + x, side="right").sum())

    return lambda k: _bisect(count, k, float(b[0] - a[-1]), float(b[-1] - a[0]))


def _bisect(count: Callable[[float], int], k: int, low: float, high: float) -> float:
    """Smallest x (to rounding) with count(x) >= k."""
    for _ in range(100):
        middle = low + (high - low) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if count(middle) >= k else (middle, high)
    return high


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


def one_sample_shift(differences: Array, confidence: float, *, widening: float = 1.0) -> Shift:
    """Hodges-Lehmann centre of paired differences with the signed-rank interval.

    The k-th smallest and largest of the Walsh averages; k by the exact law up to 60 pairs. There
    is no 95 % interval below 6 pairs. widening: as of `hodges_lehmann`.
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
    return _widened(Shift(centre, pick(k), pick(total + 1 - k)), widening)


def _walsh(d: Array) -> Callable[[int], float]:
    """Gives k -> the k-th smallest of all (d_i + d_j) / 2 with i <= j (1-based), d sorted."""
    if d.size**2 <= ALL_PAIRS:
        i, j = np.triu_indices(d.size)
        ordered = np.sort((d[i] + d[j]) / 2)
        return lambda k: float(ordered[k - 1])

    def count(x: float) -> int:
        ordered_pairs = int(np.searchsorted(d, 2 * x - d, side="right").sum())
        return (ordered_pairs + int(np.searchsorted(d, x, side="right"))) // 2

    return lambda k: _bisect(count, k, float(d[0]), float(d[-1]))
