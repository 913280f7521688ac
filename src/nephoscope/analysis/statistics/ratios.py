"""Ratios of means: what stands beside the rank-based ratio, and what imported results carry.

Sources: Fieller 1954; Kalibera & Jones 2013 (ratios of performance figures).
"""

from __future__ import annotations

import math

import numpy as np

from nephoscope.analysis.statistics import means
from nephoscope.analysis.statistics.values import Array, Refused
from nephoscope.model import Estimate


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
    return Estimate(over.mean / under.mean, low, high, confidence, n, "ratio", method, note)


def p_welch(a: Array, b: Array) -> float | None:
    """Welch's p; None for timeouts, single values, and when neither side varies."""
    try:
        return means.welch(means.summary(a), means.summary(b)).p
    except Refused:
        return None


def log_welch(a: Array, b: Array, confidence: float, widening: float = 1.0) -> Estimate | None:
    """Ratio of geometric means with Welch's interval of the logarithms."""
    values = np.concatenate([a, b])
    if not min(a.size, b.size) >= 2 or not np.all((values > 0) & np.isfinite(values)):
        return None
    first, second = (means.widened(means.summary(np.log(side)), widening) for side in (a, b))
    n = int(min(a.size, b.size))
    if first.s == second.s == 0:
        low = high = second.mean - first.mean
    else:
        low, high = means.welch(first, second).interval(confidence)
    value = math.exp(second.mean - first.mean)
    method = "ratio of geometric means; Welch's t on logarithms"
    return Estimate(value, math.exp(low), math.exp(high), confidence, n, "ratio", method)


def log_t(
    a: Array, b: Array, confidence: float, widening: float = 1.0
) -> tuple[Estimate | None, float | None]:
    """Geometric mean of the rounds' ratios with its t interval, and the paired t test's p."""
    from scipy.special import stdtr

    values = np.concatenate([a, b])
    if a.size < 2 or not np.all((values > 0) & np.isfinite(values)):
        return None, None
    logs = np.log(b) - np.log(a)
    mean = means.mean_t(logs, unit="ratio", confidence=confidence, widening=widening)
    assert mean.low is not None
    assert mean.high is not None
    ratio = Estimate(
        math.exp(mean.value),
        math.exp(mean.low),
        math.exp(mean.high),
        confidence,
        mean.n,
        "ratio",
        "geometric mean of the rounds' ratios; Student t on logarithms",
        mean.note,
    )
    error = means.summary(logs).s / math.sqrt(mean.n)
    return ratio, float(2 * stdtr(mean.n - 1, -abs(mean.value) / error)) if error else None
