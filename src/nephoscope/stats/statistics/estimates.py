"""One sample: what is its median, its percentile, and how sure is that?

Intervals of quantiles are order statistics, never a bootstrap. Their ranks come from the law of how
many values lie below the quantile: binomial for independent values, else beta-binomial with the
variance that the autocorrelation gives it. Percentiles are nearest-rank, everywhere.
Sources: Le Boudec, Performance Evaluation of Computer and Communication Systems, 2010, ch. 2;
Nyblom 1992 (interpolation between ranks).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from nephoscope.core.model import Estimate
from nephoscope.stats.statistics import dependence
from nephoscope.stats.statistics.dependence import ASSUMED, INDEPENDENT
from nephoscope.stats.statistics.distributions import (
    beta_binomial_cumulative,
    binomial_mass,
    normal_quantile,
)
from nephoscope.stats.statistics.values import (
    EVERY_REPLICATION,
    Array,
    Numbers,
    Refused,
    all_equal,
    clean,
    equal_note,
    percent,
)

POWER_OF_TAILS = 1.3
"""Power of the widening of percentiles, fitted to coverage: spells of dependent values are rarer in
a tail than about the middle, so that a series shows fewer of them."""


def mapped(estimate: Estimate, to: Callable[[float], float], **changes: Any) -> Estimate:
    """Returns an estimate with value and bounds through a rising function, and other changes."""
    low, high = (None if end is None else to(end) for end in (estimate.low, estimate.high))
    return replace(estimate, value=to(estimate.value), low=low, high=high, **changes)


@lru_cache(maxsize=4096)
def rank_bounds(n: int, q: float, confidence: float) -> tuple[int, int, float]:
    """1-based ranks (l, u) of the interval of quantile q, and the coverage that they attain.

    l is the largest rank with P(Bin(n, q) <= l-1) <= alpha/2, u the smallest with
    P(Bin(n, q) >= u) <= alpha/2. l = 0 or u = n+1 means: that side does not exist; the attained
    coverage is then that of the other side alone.
    """
    tail = (1 - confidence) / 2
    first, mass = binomial_mass(n, q)
    below = np.cumsum(mass)  # P(X <= k)
    above = np.cumsum(mass[::-1])[::-1] - mass  # P(X > k), summed from the small end
    low = first + int(np.searchsorted(below, tail, side="right"))
    high = first + int(np.argmax(above <= tail)) + 1
    coverage = (below[high - 1 - first] if high <= n else 1.0) - (
        below[low - 1 - first] if low > first else 0.0
    )
    return low, high, float(coverage)


def minimum_n(q: float, confidence: float = 0.95) -> int:
    """Returns the fewest independent repetitions for which a two-sided interval of q exists.

    At 95 %: median 6; p90, p95, p99, p99.9 36, 72, 368, 3688.
    """
    if not 0 < q < 1:
        raise Refused(f"The quantile {q} has no interval; choose a share between 0 and 1.")
    tail, side = (1 - confidence) / 2, max(q, 1 - q)
    # The tolerance keeps 0.5**6 style equalities from costing one repetition more.
    return max(2, math.ceil(math.log(tail) / math.log(side) - 1e-12))


def median(
    values: Numbers,
    *,
    unit: str,
    confidence: float = 0.95,
    prior: Array = ASSUMED,
) -> Estimate:
    """Median with its order-statistic interval, as wide as the dependence of the values requires.

    values: one a repetition in order of execution; +inf is a timeout. prior: distribution of the
    autocorrelation (see `dependence`); with `INDEPENDENT` the ranks are exact for every
    distribution. Below
    `minimum_n(0.5)` (6 at 95 %) there is no interval, only a note. Raises Refused for no values,
    for not-a-number, and when half of the repetitions or more timed out.
    """
    return quantile(values, 0.5, unit=unit, confidence=confidence, prior=prior)


def quantile(
    values: Numbers,
    q: float,
    *,
    unit: str,
    confidence: float = 0.95,
    prior: Array = ASSUMED,
) -> Estimate:
    """As `median`, of any quantile; nearest-rank but for the median.

    Where even the range of the values covers less often than asked for, it is the interval, and
    the note says what it covers.
    """
    array = clean(values)
    n, need = array.size, minimum_n(q, confidence)
    ordered = np.sort(array)
    name = "median" if q == 0.5 else f"p{100 * q:g}"
    # Not np.median: the mean of a finite and an infinite neighbour has to be infinite, silently.
    at = math.ceil(q * n - 1e-9) - 1
    value = float((ordered[(n - 1) // 2] + ordered[n // 2]) / 2 if q == 0.5 else ordered[at])
    if math.isinf(value):
        many = "Half or more" if q == 0.5 else f"More than {percent(1 - q)}"
        raise Refused(
            f"{many} of {n} repetitions timed out: the {name} lies beyond the timeout; "
            "raise the timeout."
        )
    empty = Estimate(value, None, None, confidence, n, unit, name)
    if n < need:
        note = (
            f"n = {n}: an interval of the {name} at {percent(confidence)} needs {need} repetitions."
        )
        return replace(empty, note=note)
    if prior is INDEPENDENT:
        low_rank, high_rank, coverage = rank_bounds(n, q, confidence)
        low, high = float(ordered[low_rank - 1]), float(ordered[high_rank - 1])
        ranks, note = f"{low_rank} and {high_rank}", ""
    else:
        weights = dependence.posterior(array, prior)
        factor = dependence.widening(n, weights)(confidence)
        if q != 0.5:
            factor **= POWER_OF_TAILS
        tail, law = (1 - confidence) / 2, dependence.allowed(n, factor)
        (first, below), (last, above) = (_rank(n, share, law, tail) for share in (q, 1 - q))
        if np.any(ordered[1:] == ordered[:-1]):
            # Between two ranks, a bound could leave out a value that half of the trials have.
            first, last = math.floor(first), math.floor(last)
        low, high = _between(ordered, first), _between(ordered, n + 1 - last)
        if q != 0.5 and max(below, above) > tail:
            wide = _mirrored(value, low, high)
            wide = _within_limits(wide, ordered)
            low, high = (wide[0] if below > tail else low), (wide[1] if above > tail else high)
        low, high = min(low, value), max(high, value)
        ranks, coverage = f"{first:.1f} and {n + 1 - last:.1f}", 1 - below - above
        note = "" if all_equal(ordered) else dependence.sentence(array, weights, coverage)
        empty = replace(
            empty,
            autocorrelation=dependence.autocorrelation(weights),
            effective_n=dependence.effective_n(n, weights),
        )
    method = f"{name}; order statistics {ranks} of {n}, coverage {coverage:.4f}"
    return _with_edges(replace(empty, low=low, high=high, method=method, note=note), ordered)


def median_of_replications(values: Numbers, *, unit: str, confidence: float = 0.95) -> Estimate:
    """As `median`, of replications of a simulation: each has chance of its own.

    So they cannot depend on each other, and equal values blame no timer: the note leaves that out,
    `method` says it.
    """
    estimate = median(values, unit=unit, confidence=confidence, prior=INDEPENDENT)
    if not all_equal(clean(values)):
        return estimate
    equal = equal_note(estimate.n, estimate.value, unit)
    note = estimate.note.replace(equal, "").rstrip()
    return replace(estimate, method=f"{estimate.method}; {EVERY_REPLICATION}", note=note)


@lru_cache(maxsize=256)
def _count_law(n: int, q: float) -> Array:
    """P(at most k of n values lie below the quantile q), a row for each autocorrelation."""
    z = normal_quantile(q)
    inflation = dependence.inflation(
        n, lambda correlation: dependence.normal_orthant(z, correlation) / (q * (1 - q))
    )
    return beta_binomial_cumulative(n, q, inflation)


def _rank(n: int, q: float, weights: Array, tail: float) -> tuple[float, float]:
    """1-based rank of the lower bound, between two ranks (Nyblom 1992), and its tail; n >= 2."""
    below = weights @ _count_law(n, q)
    rank = int(np.searchsorted(below, tail, side="right"))
    if not 0 < rank < n:
        return float(max(rank, 1)), float(below[max(rank, 1) - 1])
    way = (tail - below[rank - 1]) / (below[rank] - below[rank - 1])
    weight = rank * (1 - q) * (1 - way)
    return rank + float(way * (n - rank) * q / (way * (n - rank) * q + weight)), tail


def _between(ordered: Array, rank: float) -> float:
    """The order statistic at a 1-based rank, interpolated linearly between two."""
    whole = math.floor(rank)
    part, low = rank - whole, float(ordered[whole - 1])
    # An infinite neighbour is not multiplied by zero.
    return low + part * (float(ordered[whole]) - low) if part and math.isfinite(low) else low


def _within_limits(bounds: tuple[float, float], ordered: Array) -> tuple[float, float]:
    """Bounds beyond the values as far as the quantity goes, and never inside the values.

    Values that reach zero and never fall below are taken for a quantity that is never negative.
    """
    low, high = bounds
    if ordered[0] >= 0:
        low = max(low, 0.0)
    return low, high


def _mirrored(value: float, low: float, high: float) -> tuple[float, float]:
    """Bounds of which each reaches as far from the value as the other."""
    return min(low, 2 * value - high), max(high, 2 * value - low)


def _with_edges(estimate: Estimate, ordered: Array) -> Estimate:
    """The estimate, with the notes for timeouts and for values without variation."""
    notes = [estimate.note] if estimate.note else []
    if estimate.high is not None and math.isinf(estimate.high):
        estimate = replace(estimate, high=None)
        notes.append("The upper bound lies beyond the timeout.")
    if all_equal(ordered):
        notes.append(equal_note(estimate.n, estimate.value, estimate.unit))
    return replace(estimate, note=" ".join(notes))
