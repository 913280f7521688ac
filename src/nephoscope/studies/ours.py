"""Our side of a comparison: the estimate that a run's result holds for it."""

from __future__ import annotations

from collections.abc import Mapping as Map
from dataclasses import replace
from itertools import pairwise
from typing import Any

from nephoscope.analysis import compare, means, variation
from nephoscope.analysis.compare import Comparison
from nephoscope.analysis.values import Refused
from nephoscope.model import Better, Estimate, MetricResult, RunResult, level_name
from nephoscope.results.names import BESIDE
from nephoscope.studies.picks import Ours, Pick


class Absent(Exception):  # not an error: an answer that the run does not hold
    """The run holds no such estimate; the text is a sentence that says why."""


def estimate(result: RunResult, ours: Ours) -> Estimate:
    """Value or ratio with its interval, in the study's unit. Absent when the run lacks it."""
    if ours.over is None or ours.under is None:
        return value(result, ours, Pick())
    if not (ours.spread or ours.difference):
        return ratio(result, ours, ours.over, ours.under)
    above, below = line(result, ours, ours.over), line(result, ours, ours.under)
    apart = _spread if ours.spread else _difference
    return _times(apart(above, below, float(result.run["confidence"])), ours.times)


def value(result: RunResult, ours: Ours, pick: Pick) -> Estimate:
    """The statistic of one line, in the study's unit. Absent when the run lacks it."""
    one = line(result, ours, pick)
    confidence = float(result.run["confidence"])
    return _times(_statistic(one, pick.statistic or ours.statistic, confidence), ours.times)


def ratio(result: RunResult, ours: Ours, over: Pick, under: Pick) -> Estimate:
    """How many times the one line is the other, by rounds. Absent when the run lacks one."""
    above, below = line(result, ours, over), line(result, ours, under)
    return _times(_ratio(above, below, float(result.run["confidence"])), ours.times)


def values(result: RunResult, ours: Ours, pick: Pick) -> list[float]:
    """The value of every trial of one line in order, in the study's unit."""
    return [one * ours.times for one in line(result, ours, pick).trial_values]


def steps(result: RunResult, ours: Ours, order: tuple[str, ...]) -> list[Estimate]:
    """Ratio of each name of the order to the next one. Absent when the run lacks one of them."""
    lines = [line(result, ours, ours.order[name]) for name in order]
    confidence = float(result.run["confidence"])
    return [_ratio(one, next_one, confidence) for one, next_one in pairwise(lines)]


def line(result: RunResult, ours: Ours, pick: Pick) -> MetricResult:
    """The one line of the result that is meant: of several, the one of fewest factors."""
    benchmark, metric = pick.benchmark or ours.benchmark, pick.metric or ours.metric
    target, factors = pick.target or ours.target, {**ours.factors, **pick.factors}
    found = [
        one
        for one in result.metrics
        if (one.benchmark, one.metric) == (benchmark, metric)
        and target in ("", one.target)
        and _holds(one.factors, factors)
        # Rows of loads and hooks stand beside a trial; they are its answer only where asked for.
        and not (BESIDE & one.factors.keys()) - factors.keys()
    ]
    wanted = f"{benchmark} {metric}" + (f" on {target}" if target else "") + _levels(factors)
    if not found:
        raise Absent(f"the run has no valid trial of {wanted}")
    if len(found) > 1:
        # A line of everything, and those of its parts: nothing more was asked for than the first.
        fewest = min(len(one.factors) for one in found)
        found = [one for one in found if len(one.factors) == fewest]
    if len(found) > 1:
        raise Absent(f"the run has {len(found)} lines of {wanted}; study.yaml must name one")
    return found[0]


def _holds(have: Map[str, Any], wanted: Map[str, Any]) -> bool:
    return all(name in have and _same(have[name], level) for name, level in wanted.items())


def _same(one: Any, other: Any) -> bool:
    """Levels are equal as values, or as the texts that a plan gives ('150ms' stays a text)."""
    return bool(one == other) or str(one) == str(other)


def _levels(factors: Map[str, Any]) -> str:
    levels = ", ".join(f"{name}={level_name(level)}" for name, level in factors.items())
    return f" ({levels})" if levels else ""


def _ratio(above: MetricResult, below: MetricResult, confidence: float) -> Estimate:
    """How many times `below` is `above`: by rounds where they share some, else as two samples."""
    found = _compared(above, below, confidence)
    if found.ratio is None:
        raise Absent("there is no ratio: the values are not all above zero")
    return found.ratio


def _difference(above: MetricResult, below: MetricResult, confidence: float) -> Estimate:
    """`above` less `below`, by rounds where they share some, else as two samples."""
    found = _compared(above, below, confidence)
    if found.difference is None:
        raise Absent("there is no difference: some trials did not end in time")
    return found.difference


def _compared(above: MetricResult, below: MetricResult, confidence: float) -> Comparison:
    one = below.by_round
    other = above.by_round
    shared = sorted(one.keys() & other.keys())
    replications = above.simulated and below.simulated
    try:
        if len(shared) >= compare.LEAST_PAIRED:
            return compare.paired(
                [one[r] for r in shared],
                [other[r] for r in shared],
                better=Better.NONE,
                confidence=confidence,
                replications=replications,
            )
        return compare.independent(
            below.trial_values,
            above.trial_values,
            better=Better.NONE,
            confidence=confidence,
            replications=replications,
        )
    except Refused as error:
        raise Absent(f"they cannot be compared: {error}") from error


def _statistic(one: MetricResult, statistic: str, confidence: float) -> Estimate:
    unit = one.estimate.unit
    try:
        if statistic == "mean":
            values, least = one.trial_values, means.least_of(one.trial_values)
            return means.mean_t(values, unit=unit, confidence=confidence, least=least)
        if statistic == "stdev":
            return variation.standard_deviation(one.trial_values, unit=unit, confidence=confidence)
        if statistic == "cv":
            return variation.coefficient_of_variation(one.trial_values, confidence=confidence)
    except Refused as error:
        raise Absent(f"there is no {statistic}: {error}") from error
    return one.estimate


def _spread(above: MetricResult, below: MetricResult, confidence: float) -> Estimate:
    try:
        return variation.ratio_of_robust_cv(
            below.trial_values, above.trial_values, confidence=confidence
        )
    except Refused as error:
        raise Absent(f"there is no ratio of spreads: {error}") from error


def _times(found: Estimate, factor: float) -> Estimate:
    if factor == 1:
        return found

    def scaled(value: float | None) -> float | None:
        return None if value is None else value * factor

    low, high = scaled(found.low), scaled(found.high)
    return replace(found, value=found.value * factor, low=low, high=high)
