"""Resampling, for statistics without a closed form; never for quantiles (they have ranks).

Source: Efron 1987 (BCa); Hesterberg 2015 (expanded percentiles for few units).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from nephoscope.stats.statistics.distributions import normal_cdf, student_quantile
from nephoscope.stats.statistics.values import Array

Statistic = Callable[[Array], Array]
"""Takes shape (…, n), gives shape (…)."""

CHUNK = 2_000_000  # values drawn at once: 16 MB


def resample(values: Array, statistic: Statistic, *, seed: int, resamples: int) -> Array:
    """The statistic of `resamples` samples drawn with replacement, in bounded memory."""
    rng = np.random.default_rng(seed)
    rows = max(1, CHUNK // values.size)
    drawn = [
        statistic(values[rng.integers(0, values.size, (min(rows, resamples - done), values.size))])
        for done in range(0, resamples, rows)
    ]
    return np.concatenate(drawn)


def bca(
    values: Array, statistic: Statistic, *, confidence: float, seed: int, resamples: int
) -> tuple[float, float]:
    """Bias-corrected and accelerated interval of a smooth statistic of finite values."""
    from scipy.special import ndtr, ndtri

    point = float(statistic(values))
    replicas = np.sort(resample(values, statistic, seed=seed, resamples=resamples))
    # Replicas equal to the point count half: measured values lie on a lattice (whole ms), where
    # counting none of them would shift both bounds.
    slack = 1e-12 * abs(point)
    ends = np.searchsorted(replicas, [point - slack, point + slack])
    below = float(ends.sum()) / 2 / resamples
    # A share of 0 or 1 would give an infinite bias; half a resample is as far as B can tell.
    z0 = ndtri(min(max(below, 0.5 / resamples), 1 - 0.5 / resamples))
    left_out = np.array([float(statistic(np.delete(values, i))) for i in range(values.size)])
    d = left_out.mean() - left_out
    power = float(np.sum(d**2)) ** 1.5
    a = float(np.sum(d**3)) / (6 * power) if power else 0.0
    z = ndtri([(1 - confidence) / 2, (1 + confidence) / 2])
    low, high = np.quantile(replicas, ndtr(z0 + (z0 + z) / (1 - a * (z0 + z))))
    return float(low), float(high)


def interval_of_draws(drawn: Array, point: float, confidence: float) -> tuple[float, float]:
    """Equal-tailed interval of draws of a quantity; it always holds the point."""
    tail = (1 - confidence) / 2
    low, high = (float(end) for end in np.quantile(drawn, [tail, 1 - tail]))
    return min(low, point), max(high, point)


def percentile_interval(
    replicas: Array, point: float, units: int, confidence: float
) -> tuple[float, float]:
    """Percentile interval, its tails moved out for few units (6 trials, say).

    A plain percentile interval is too narrow by sqrt((k-1)/k) and uses z where t is due; the
    tails are taken at Phi(-sqrt(k/(k-1)) t). It always holds the point. replicas may be infinite.
    """
    stretch = math.sqrt(units / (units - 1)) * student_quantile(units - 1, (1 + confidence) / 2)
    tail = normal_cdf(-stretch)
    ordered = np.sort(replicas)
    last = ordered.size - 1
    low, high = ordered[math.floor(tail * last)], ordered[math.ceil((1 - tail) * last)]
    return min(float(low), point), max(float(high), point)


def interval_of_ratio(
    over: Array, under: Array, point: float, units: int, confidence: float
) -> tuple[float, float | None]:
    """As `percentile_interval`, of the ratio of replicas; the upper bound is None if infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.nan_to_num(over / under, nan=1.0, posinf=np.inf)
    low, high = percentile_interval(ratios, point, units, confidence)
    return low, high if math.isfinite(high) else None
