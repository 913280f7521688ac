"""Costs of many alternatives of one metric, each with an error of its own.

Pairs of thousands of alternatives are too many to compare one by one. An error for each alternative
gives the error of every pair, and its variance is estimated with the help of all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nephoscope.core.model import Better, Estimate, MetricResult
from nephoscope.features.rank.pairs import MIN_N
from nephoscope.features.rank.standing import OwnErrors
from nephoscope.stats.statistics import dependence
from nephoscope.stats.statistics.moderation import moderated
from nephoscope.stats.statistics.values import Array

SERIES = 200
"""Series from which the dependence of repetitions, which they have in common, is estimated."""
BACKFITS = 20
METHOD = "geometric mean; Student t on logarithms, with variances shared among alternatives"


def of_many(
    lines: Sequence[MetricResult], confidence: float
) -> tuple[Array, OwnErrors | None, list[MetricResult]]:
    """Returns costs (logarithms), their errors, and the lines with an interval for each value.

    Below 4 repetitions an alternative has no error; without any, the cost is the stated value.
    Effects of rounds that alternatives share are removed from costs and errors.
    """
    sign = -1 if lines[0].better is Better.HIGHER else 1
    n = np.array([len(line.trial_values) for line in lines])
    if n.max() < MIN_N:
        values = np.array([line.estimate.value for line in lines])
        return sign * np.log(values), None, list(lines)
    logs = [sign * np.log(line.trial_values) for line in lines]
    adjusted = _without_rounds(logs, lines)
    costs = np.array([series.mean() for series in adjusted])
    factors = _widening(adjusted, lines, len(lines), confidence)
    error, df = _errors(adjusted, n, factors)
    stated = _stated(lines, logs, n, factors, sign, confidence)
    return costs, OwnErrors(error, df), stated


def _errors(series: Sequence[Array], n: Array, factors: Array) -> tuple[Array, Array]:
    """Returns the standard error of each mean and its degrees of freedom; infinite below 4."""
    enough = n >= MIN_N
    variances = np.where(enough, _variances(series), 0.0)
    moved, df = moderated(variances, np.where(enough, n - 1.0, 0.0))
    error = np.where(enough, np.sqrt(moved / n) * factors, np.inf)
    return error, np.where(enough, df, df.max())


def _variances(series: Sequence[Array]) -> Array:
    """Returns the sample variance of each series, of all at once; 0 of a single value."""
    sizes = np.array([own.size for own in series])
    owner, flat = np.repeat(np.arange(len(series)), sizes), np.concatenate(series)
    means = np.bincount(owner, flat) / sizes
    return np.asarray(np.bincount(owner, (flat - means[owner]) ** 2) / np.maximum(sizes - 1, 1))


def _without_rounds(logs: Sequence[Array], lines: Sequence[MetricResult]) -> list[Array]:
    """Returns the logarithms without the effect of each round; as they are without rounds."""
    if any(len(line.rounds) != len(line.trial_values) for line in lines):
        return list(logs)
    rounds, back = np.unique(np.concatenate([line.rounds for line in lines]), return_inverse=True)
    owner = np.repeat(np.arange(len(logs)), [own.size for own in logs])
    flat, effect = np.concatenate(logs), np.zeros(len(rounds))
    sizes, visits = np.bincount(owner), np.bincount(back)
    for _ in range(BACKFITS):
        level = np.bincount(owner, flat - effect[back]) / sizes
        step = np.bincount(back, flat - effect[back] - level[owner]) / visits
        effect += step
        if np.abs(step).max() < 1e-12:
            break
    # The effects take with them a part of the variance: 1 of as many degrees of freedom as each
    # round has alternatives.
    level = np.bincount(owner, flat - effect[back]) / sizes
    left = np.sqrt(visits / np.maximum(visits - 1, 1))[back]
    flat = level[owner] + (flat - effect[back] - level[owner]) * left
    return np.split(flat, np.cumsum(sizes)[:-1])


def _widening(
    series: Sequence[Array], lines: Sequence[MetricResult], k: int, confidence: float
) -> Array:
    """Returns how many times dependence widens the interval of each alternative's mean."""
    if all(line.simulated for line in lines):
        return np.ones(len(series))
    enough = [own for own in series if own.size >= MIN_N]
    step = max(1, len(enough) // SERIES)
    weights = dependence.shared([[own] for own in enough[::step]])
    level = 1 - 2 * (1 - confidence) / (k * (k - 1))
    factors = {
        size: dependence.widening(size, weights)(level) for size in {own.size for own in enough}
    }
    return np.array([factors.get(own.size, 1.0) for own in series])


def _stated(
    lines: Sequence[MetricResult],
    logs: Sequence[Array],
    n: Array,
    factors: Array,
    sign: int,
    confidence: float,
) -> list[MetricResult]:
    """Returns the lines; those whose value has no interval yet get their geometric mean with it."""
    from scipy.special import stdtrit

    error, df = _errors(logs, n, factors)
    half = stdtrit(df, (1 + confidence) / 2) * error
    result = []
    for line, own, width in zip(lines, logs, half.tolist(), strict=True):
        if line.estimate.low is None and own.size >= MIN_N:
            centre = sign * float(own.mean())
            low, high = np.exp(centre - width), np.exp(centre + width)
            unit, size = line.estimate.unit, int(own.size)
            value = float(np.exp(centre))
            estimate = Estimate(value, float(low), float(high), confidence, size, unit, METHOD)
            line = replace(line, estimate=estimate)
        result.append(line)
    return result
