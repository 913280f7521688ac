"""One sample: what is its median, its percentile, and how sure is that?

Intervals of quantiles are order statistics (ranks of a binomial law): exact for every
distribution, never a bootstrap. Percentiles are nearest-rank, everywhere.
Source: Le Boudec, Performance Evaluation of Computer and Communication Systems, 2010, ch. 2.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from nephoscope.analysis import dependence
from nephoscope.analysis.means import harmonic_mean, mean_bca, mean_t
from nephoscope.analysis.values import (
    EQUAL_NOTE,
    EVERY_REPLICATION,
    Array,
    Numbers,
    Refused,
    all_equal,
    clean,
    percent,
)
from nephoscope.model import Estimate

__all__ = [
    "Refused",
    "harmonic_mean",
    "mean_bca",
    "mean_t",
    "median",
    "median_dependent",
    "median_of_replications",
    "minimum_n",
    "nearest_rank",
    "quantile",
    "rank_bounds",
    "upper_bound",
]


def nearest_rank(values: Numbers, q: float) -> float:
    """The quantile by nearest rank: the smallest value with at least a share q at or below it.

    Always a value that was observed; p90 of 1…10 is 9 (type 7 would say 9.1).
    """
    ordered = np.sort(clean(values))
    return float(ordered[nearest_rank_index(ordered.size, q)])


def nearest_rank_index(n: int, q: float) -> int:
    """0-based position of the nearest-rank quantile among n ordered values."""
    if not 0 <= q <= 1:
        raise Refused(f"{q} is no quantile; give a share between 0 and 1, 0.99 for p99.")
    # The subtraction undoes rounding: 0.9 * 10 must not become rank 10.
    return min(n - 1, max(0, math.ceil(q * n - 1e-9) - 1))


@lru_cache(maxsize=4096)
def rank_bounds(n: int, q: float, confidence: float) -> tuple[int, int, float]:
    """1-based ranks (l, u) of the interval of quantile q, and the coverage that they attain.

    l is the largest rank with P(Bin(n, q) <= l-1) <= alpha/2, u the smallest with
    P(Bin(n, q) >= u) <= alpha/2. l = 0 or u = n+1 means: that side does not exist; the attained
    coverage is then that of the other side alone.
    """
    from scipy.special import bdtr, bdtrc

    tail = (1 - confidence) / 2
    reach = 12 + 12 * math.sqrt(n * q * (1 - q))  # beyond 12 standard deviations nothing is left
    first, last = max(0, math.floor(n * q - reach)), min(n, math.ceil(n * q + reach))
    at = np.arange(first, last + 1)
    below, above = bdtr(at, n, q), bdtrc(at, n, q)  # P(X <= k), P(X > k)
    low = first + int(np.searchsorted(below, tail, side="right"))
    high = first + int(np.argmax(above <= tail)) + 1
    coverage = (bdtr(high - 1, n, q) if high <= n else 1.0) - (bdtr(low - 1, n, q) if low else 0.0)
    return low, high, float(coverage)


def minimum_n(q: float, confidence: float = 0.95, *, two_sided: bool = True) -> int:
    """Fewest independent repetitions for which an interval (or upper bound) of q exists.

    At 95 %: median 6; p90, p95, p99, p99.9 two-sided 36, 72, 368, 3688, upper bound alone
    29, 59, 299, 2995.
    """
    if not 0 < q < 1:
        raise Refused(f"The quantile {q} has no interval; choose a share between 0 and 1.")
    tail = (1 - confidence) / 2 if two_sided else 1 - confidence
    side = max(q, 1 - q) if two_sided else q
    # The tolerance keeps 0.5**6 style equalities from costing one repetition more.
    return math.ceil(math.log(tail) / math.log(side) - 1e-12)


def median(values: Numbers, *, unit: str, confidence: float = 0.95) -> Estimate:
    """Median with its order-statistic interval; the attained coverage stands in `method`.

    values: one a repetition; +inf is a timeout. Below `minimum_n(0.5)` (6 at 95 %) there is no
    interval, only a note. Raises Refused for no values, for not-a-number, and when half of the
    repetitions or more timed out.
    """
    return _median(clean(values), unit, confidence, 1.0)


def median_dependent(values: Numbers, *, unit: str, confidence: float = 0.95) -> Estimate:
    """As `median`, with ranks moved apart when the repetitions depend on each other.

    That is so when the lag-1 autocorrelation exceeds 0.1 *and* the runs test rejects order by
    chance at 5 % (alone, the first happens in a third of independent series of ten). The ranks
    then move away from the middle by the factor sqrt(n / n_eff); the note says so.
    """
    array = clean(values)
    sentence, n_eff = dependence.warning(array)
    if sentence is None:
        return median(array, unit=unit, confidence=confidence)
    return _median(array, unit, confidence, math.sqrt(array.size / n_eff), sentence)


def median_of_replications(values: Numbers, *, unit: str, confidence: float = 0.95) -> Estimate:
    """As `median`, of replications of a simulation: each has chance of its own.

    So they cannot depend on each other, and equal values blame no timer: the note leaves that out,
    `method` says it.
    """
    found = median(values, unit=unit, confidence=confidence)
    if not all_equal(clean(values)):
        return found
    note = found.note.replace(EQUAL_NOTE.format(n=found.n), "").rstrip()
    return replace(found, method=f"{found.method}; {EVERY_REPLICATION}", note=note)


def _median(
    array: Array, unit: str, confidence: float, widening: float, warning: str = ""
) -> Estimate:
    ordered = np.sort(array)
    n = ordered.size
    # Not np.median: the mean of a finite and an infinite neighbour has to be infinite, silently.
    value = float((ordered[(n - 1) // 2] + ordered[n // 2]) / 2)
    if math.isinf(value):
        raise Refused(
            f"Half or more of {n} repetitions timed out: the median lies beyond the timeout; "
            "raise the timeout."
        )
    low_rank, high_rank, coverage = rank_bounds(n, 0.5, confidence)
    notes = [warning] if warning else []
    low = high = None
    if low_rank < 1 or high_rank > n:
        need = minimum_n(0.5, confidence)
        notes.append(
            f"n = {n}: an interval of the median at {percent(confidence)} needs {need} repetitions."
        )
        return Estimate(value, None, None, confidence, n, unit, "median", " ".join(notes))
    method = f"median; order statistics {low_rank} and {high_rank} of {n}, coverage {coverage:.4f}"
    if widening > 1:
        low_rank = math.floor(n / 2 - (n / 2 - low_rank) * widening)
        high_rank = n + 1 - low_rank
        method = f"median; order statistics {low_rank} and {high_rank} of {n}, widened"
        if low_rank < 1:
            notes.append("So few effective repetitions give no interval of the median.")
            return Estimate(value, None, None, confidence, n, unit, "median", " ".join(notes))
    low, high = float(ordered[low_rank - 1]), float(ordered[high_rank - 1])
    return _with_edges(ordered, value, low, high, confidence, unit, method, notes)


def quantile(values: Numbers, q: float, *, unit: str, confidence: float = 0.95) -> Estimate:
    """Nearest-rank quantile with its two-sided order-statistic interval.

    values: independent repetitions, shape (n,). Raises Refused below `minimum_n(q)` values (two-
    sided p99 at 95 %: 368) and when the quantile itself lies among the timeouts.
    """
    ordered = np.sort(clean(values))
    n = ordered.size
    low_rank, high_rank, coverage = rank_bounds(n, q, confidence) if 0 < q < 1 else (0, 0, 0)
    if low_rank < 1 or high_rank > n:
        raise Refused(
            f"{_name(q)} of {n} values has no two-sided interval at {percent(confidence)}; "
            f"it needs {minimum_n(q, confidence)}."
        )
    value = _observed(ordered, q)
    method = (
        f"{_name(q)}, nearest rank; order statistics {low_rank} and {high_rank} of {n}, "
        f"coverage {coverage:.4f}"
    )
    low, high = float(ordered[low_rank - 1]), float(ordered[high_rank - 1])
    return _with_edges(ordered, value, low, high, confidence, unit, method, [])


def upper_bound(values: Numbers, q: float, *, unit: str, confidence: float = 0.95) -> Estimate:
    """Nearest-rank quantile with a one-sided upper bound (`low` is None by intent).

    The bound is x(u), u the smallest rank with P(Bin(n, q) >= u) <= alpha. Raises Refused below
    `minimum_n(q, two_sided=False)` values (p99 at 95 %: 299).
    """
    ordered = np.sort(clean(values))
    n = ordered.size
    need = minimum_n(q, confidence, two_sided=False)
    if n < need:
        raise Refused(
            f"{_name(q)} of {n} values has no upper bound at {percent(confidence)}; "
            f"it needs {need}."
        )
    value = _observed(ordered, q)
    _, rank, _ = rank_bounds(n, q, 2 * confidence - 1)  # tails of alpha instead of alpha/2
    method = f"{_name(q)}, nearest rank; one-sided upper bound, order statistic {rank} of {n}"
    bound = float(ordered[rank - 1])
    note = "One-sided: only the upper bound is given."
    return _with_edges(ordered, value, None, bound, confidence, unit, method, [note])


def _observed(ordered: Array, q: float) -> float:
    value = float(ordered[nearest_rank_index(ordered.size, q)])
    if math.isinf(value):
        raise Refused(
            f"{_name(q)} lies among the timeouts ({int(np.isinf(ordered).sum())} of "
            f"{ordered.size}); raise the timeout or ask for a lower percentile."
        )
    return value


def _with_edges(
    ordered: Array,
    value: float,
    low: float | None,
    high: float,
    confidence: float,
    unit: str,
    method: str,
    notes: list[str],
) -> Estimate:
    """The estimate, with the notes for timeouts and for values without variation."""
    top: float | None = high
    if math.isinf(high):
        top = None
        notes.append("The upper bound lies beyond the timeout.")
    if all_equal(ordered):
        notes.append(EQUAL_NOTE.format(n=ordered.size))
    return Estimate(value, low, top, confidence, ordered.size, unit, method, " ".join(notes))


def _name(q: float) -> str:
    return f"p{100 * q:g}"
