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

from nephoscope.analysis.statistics import dependence
from nephoscope.analysis.statistics.distributions import binomial_mass
from nephoscope.analysis.statistics.values import (
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
    estimate = median(values, unit=unit, confidence=confidence)
    if not all_equal(clean(values)):
        return estimate
    note = estimate.note.replace(EQUAL_NOTE.format(n=estimate.n), "").rstrip()
    return replace(estimate, method=f"{estimate.method}; {EVERY_REPLICATION}", note=note)


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
