"""Ratios of means: what stands beside the rank-based ratio, and what imported results carry.

Sources: Fieller 1954; Kalibera & Jones 2013 (ratios of performance figures); Zou & Donner 2008
(intervals of products from the intervals of their factors).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from nephoscope.core.model import Estimate
from nephoscope.stats.statistics import means
from nephoscope.stats.statistics.distributions import normal_quantile
from nephoscope.stats.statistics.estimates import mapped
from nephoscope.stats.statistics.reach import (
    range_of_differences,
    range_of_ratios,
    with_note_of_width,
    without_wide_interval,
)
from nephoscope.stats.statistics.values import Array, Numbers, Refused, finite


def ratio_of_means(
    a: Array, b: Array, unit: str, confidence: float, widening: float = 1.0
) -> Estimate | None:
    """Fieller's interval; rates are inverted first, so that the work of both sides is equal.

    widening: factor of the width of intervals for dependent values, here and below.
    """
    values = np.concatenate([a, b])
    if not min(a.size, b.size) >= 2 or not np.all(np.isfinite(values)):
        return None
    rate = unit.endswith("per_s") and bool(np.all(values > 0))
    top, bottom = (1 / a, 1 / b) if rate else (b, a)
    over, under = (means.widened(means.summary(side), widening) for side in (top, bottom))
    bounds = means.fieller(under, over, confidence)
    if under.mean == 0:
        return None
    method = f"ratio of {'harmonic' if rate else 'arithmetic'} means; Fieller"
    note = "" if bounds else "Unbounded: A's mean is not distinguishable from zero (g >= 1)."
    low, high = bounds or (None, None)
    n = int(min(a.size, b.size))
    estimate = Estimate(over.mean / under.mean, low, high, confidence, n, "ratio", method, note)
    return without_wide_interval(estimate, range_of_ratios(bottom, top))


def p_welch(a: Array, b: Array) -> float | None:
    """Welch's p; None for timeouts, single values, and when neither side varies."""
    try:
        return means.welch(means.summary(a), means.summary(b)).p
    except Refused:
        return None


def log_welch(a: Array, b: Array, confidence: float, widening: float = 1.0) -> Estimate | None:
    """Ratio of geometric means with Welch's interval of the logarithms.

    The interval of a few values stays, with a note that they are not enough.
    """
    values = np.concatenate([a, b])
    if not min(a.size, b.size) >= 2 or not np.all((values > 0) & np.isfinite(values)):
        return None
    logs = np.log(a), np.log(b)
    first, second = (means.widened(means.summary(side), widening) for side in logs)
    n = int(min(a.size, b.size))
    if first.s == second.s == 0:
        low = high = second.mean - first.mean
    else:
        low, high = means.welch(first, second).interval(confidence)
    method = "ratio of geometric means; Welch's t on logarithms"
    shift = Estimate(second.mean - first.mean, low, high, confidence, n, "ratio", method)
    return mapped(with_note_of_width(shift, range_of_differences(*logs)), math.exp)


def log_t(
    a: Array, b: Array, confidence: float, widening: float = 1.0
) -> tuple[Estimate | None, float | None]:
    """Geometric mean of the rounds' ratios with its t interval, and the paired t test's p."""
    values = np.concatenate([a, b])
    if a.size < 2 or not np.all((values > 0) & np.isfinite(values)):
        return None, None
    logs = np.log(b) - np.log(a)
    mean = means.mean_t(logs, unit="ratio", confidence=confidence, widening=widening)
    method = "geometric mean of the rounds' ratios; Student t on logarithms"
    ratio = mapped(mean, math.exp, method=method)
    error = means.summary(logs).s / math.sqrt(mean.n)
    return ratio, means.two_sided_p(mean.value, error, mean.n - 1) if error else None


def geometric_mean(values: Numbers, *, unit: str, confidence: float = 0.95) -> Estimate:
    """Geometric mean of values above zero with the t interval of their logarithms.

    The interval of a few values stays, with a note that they are not enough.
    """
    array = np.log(finite(values))
    whole = means.t_interval(array, unit=unit, confidence=confidence)
    return mapped(
        with_note_of_width(whole, float(np.ptp(array))),
        math.exp,
        method="geometric mean; Student t on logarithms",
    )


def log_error(estimate: Estimate) -> float:
    """Standard error of the logarithm, from the width of the interval; 0 without an interval."""
    if estimate.low is None or estimate.high is None or estimate.low <= 0:
        return 0.0
    z = normal_quantile((1 + estimate.confidence) / 2)
    return (math.log(estimate.high) - math.log(estimate.low)) / 2 / z


def quotient(
    over: Sequence[Estimate], under: Sequence[Estimate], *, factor: float = 1.0, unit: str
) -> Estimate:
    """Product of independent estimates above zero over the product of others, times a factor.

    The distances of value and bounds on the logarithm add in squares, each side by itself; with a
    single estimate the bounds are exactly its own. An estimate without an interval is exact. All
    have the same confidence.
    """
    value, below, above = math.log(factor), 0.0, 0.0
    estimated = [part for part in (*over, *under) if part.low is not None and part.high is not None]
    for sign, side in ((1, over), (-1, under)):
        for part in side:
            value += sign * math.log(part.value)
            if part.low is None or part.high is None:
                continue
            distances = [math.log(part.value / part.low), math.log(part.high / part.value)]
            below = math.hypot(below, distances[sign < 0])
            above = math.hypot(above, distances[sign > 0])
    n = min((part.n for part in estimated), default=0)
    confidence = estimated[0].confidence if estimated else 0.95
    if not estimated:
        method = "exact: no estimate has an interval"
        return Estimate(math.exp(value), None, None, confidence, n, unit, method)
    ends = math.exp(value - below), math.exp(value + above)
    method = "product of independent estimates; intervals combined on logarithms"
    return Estimate(math.exp(value), *ends, confidence, n, unit, method)
