"""Finds the estimate of a run's result that answers a published figure."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from nephoscope.core.model import Better, Estimate, InvalidTrial, MetricResult, RunResult
from nephoscope.core.naming import line_name
from nephoscope.features.studies.definition.selectors import MeasuredFigure, MetricSelection
from nephoscope.results.names import AUXILIARY_FACTORS
from nephoscope.stats import compare
from nephoscope.stats.compare import TwoSampleComparison
from nephoscope.stats.statistics import means, variation
from nephoscope.stats.statistics.estimates import mapped
from nephoscope.stats.statistics.fairness import jain_of_rounds
from nephoscope.stats.statistics.values import Refused


class Absent(Exception):  # not an error: the run does not hold the answer
    """The run holds no such estimate; the text is a sentence with the reason."""


def estimate(result: RunResult, figure: MeasuredFigure) -> Estimate:
    """Returns value or ratio with its interval, in the study's unit. Absent if there is none."""
    if figure.numerator is None or figure.denominator is None:
        return value(result, figure, MetricSelection())
    if not (figure.spread or figure.difference or figure.fairness):
        return ratio(result, figure, figure.numerator, figure.denominator)
    above, below = (select(result, figure, side) for side in (figure.numerator, figure.denominator))
    if figure.fairness:
        return _fairness(above, below, result.run.confidence)
    contrast = _ratio_of_spreads if figure.spread else _difference
    return _scaled(contrast(above, below, result.run.confidence), figure.scale)


def value(result: RunResult, figure: MeasuredFigure, selection: MetricSelection) -> Estimate:
    """Returns the statistic of one metric, in the study's unit. Absent if there is none."""
    metric = select(result, figure, selection)
    statistic = selection.statistic or figure.statistic
    return _scaled(_statistic(metric, statistic, result.run.confidence), figure.scale)


def ratio(
    result: RunResult,
    figure: MeasuredFigure,
    numerator: MetricSelection,
    denominator: MetricSelection,
) -> Estimate:
    """Returns the ratio of two metrics, by rounds. Absent when the run lacks one of them."""
    above, below = (select(result, figure, side) for side in (numerator, denominator))
    return _scaled(_ratio(above, below, result.run.confidence), figure.scale)


def trial_values(
    result: RunResult, figure: MeasuredFigure, selection: MetricSelection
) -> list[float]:
    """Returns the value of every trial of one metric in order, in the study's unit."""
    return [x * figure.scale for x in select(result, figure, selection).trial_values]


def steps(result: RunResult, figure: MeasuredFigure, order: tuple[str, ...]) -> list[Estimate]:
    """Returns the ratio of each name of the order to the next one. Absent if one is missing."""
    metrics = [select(result, figure, figure.order[name]) for name in order]
    return [_ratio(above, below, result.run.confidence) for above, below in pairwise(metrics)]


def select(result: RunResult, figure: MeasuredFigure, selection: MetricSelection) -> MetricResult:
    """Returns the selected metric of the result; of several, the one of fewest factors."""
    benchmark = selection.benchmark or figure.benchmark
    name = selection.metric or figure.metric
    target = selection.target or figure.target
    factors = {**figure.factors, **selection.factors}
    matches = [
        metric
        for metric in result.metrics
        if (metric.benchmark, metric.metric) == (benchmark, name)
        and target in ("", metric.target)
        and _has_levels(metric.factors, factors)
        # Rows of loads and hooks count only where their factors are selected.
        and not (AUXILIARY_FACTORS & metric.factors.keys()) - factors.keys()
    ]
    description = line_name(benchmark, name, factors) + (f" on {target}" if target else "")
    if not matches:
        raise Absent(_absence(result, benchmark, target, factors, description))
    # A metric of everything, and those of its parts: nothing more was selected than the first.
    fewest = min(len(metric.factors) for metric in matches)
    matches = [metric for metric in matches if len(metric.factors) == fewest]
    if len(matches) > 1:
        raise Absent(f"the run has {len(matches)} lines of {description}; study.yaml must name one")
    return matches[0]


def _absence(
    result: RunResult, benchmark: str, target: str, wanted: Mapping[str, Any], description: str
) -> str:
    """Returns why the run has no estimate: no trial, or too few that were not excluded."""

    def concerns(measurement: MetricResult | InvalidTrial) -> bool:
        shared = {name: level for name, level in wanted.items() if name in measurement.factors}
        is_same = measurement.benchmark == benchmark and target in ("", measurement.target)
        return is_same and _has_levels(measurement.factors, shared)

    excluded = [trial for trial in result.invalid if concerns(trial)]
    if not excluded:
        return f"the run has no valid trial of {description}"
    amount = "too few valid trials" if any(map(concerns, result.metrics)) else "no valid trial"
    number = f"{len(excluded)} {'was' if len(excluded) == 1 else 'were'} excluded"
    reason = excluded[0].reasons[0].rstrip(".")
    return f"the run has {amount} of {description}: {number} ({reason})"


def _has_levels(factors: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Returns whether all levels are equal, as values or as the texts of a plan ('150ms' is a
    text)."""
    return all(
        name in factors and (factors[name] == level or str(factors[name]) == str(level))
        for name, level in wanted.items()
    )


def _ratio(above: MetricResult, below: MetricResult, confidence: float) -> Estimate:
    ratio = _compared(above, below, confidence).ratio
    if ratio is None:
        raise Absent("there is no ratio: the values are not all above zero")
    return ratio


def _difference(above: MetricResult, below: MetricResult, confidence: float) -> Estimate:
    difference = _compared(above, below, confidence).difference
    if difference is None:
        raise Absent("there is no difference: some trials did not end in time")
    return difference


def _compared(above: MetricResult, below: MetricResult, confidence: float) -> TwoSampleComparison:
    """Compares by rounds where both share enough of them, else as two independent samples.

    The autocorrelation is that of these series alone. Nothing is pooled: a figure of a study takes
    one metric of two settings, and other metrics of the same settings share their noise.
    """
    sides = compare.shared_rounds(below, above)
    options: dict[str, Any] = {
        "better": Better.NONE,
        "confidence": confidence,
        "replications": above.simulated and below.simulated,
    }
    try:
        if sides[0].size >= compare.LEAST_PAIRED:
            return compare.paired(*sides, **options)
        return compare.independent(below.trial_values, above.trial_values, **options)
    except Refused as error:
        raise Absent(f"they cannot be compared: {error}") from error


def _statistic(metric: MetricResult, statistic: str, confidence: float) -> Estimate:
    unit, values = metric.estimate.unit, metric.trial_values
    try:
        if statistic == "mean":
            least = means.least_of(values)
            return means.mean_of_skewed(values, unit=unit, confidence=confidence, least=least)
        if statistic == "stdev":
            return variation.standard_deviation(values, unit=unit, confidence=confidence)
        if statistic == "cv":
            return variation.coefficient_of_variation(values, confidence=confidence)
    except Refused as error:
        raise Absent(f"there is no {statistic}: {error}") from error
    return metric.estimate


def _ratio_of_spreads(above: MetricResult, below: MetricResult, confidence: float) -> Estimate:
    try:
        return variation.ratio_of_robust_cv(
            below.trial_values, above.trial_values, confidence=confidence
        )
    except Refused as error:
        raise Absent(f"there is no ratio of spreads: {error}") from error


def _fairness(first: MetricResult, second: MetricResult, confidence: float) -> Estimate:
    """Jain's index of what both got in the same rounds."""
    sides = compare.shared_rounds(first, second)
    try:
        return jain_of_rounds(list(zip(*sides, strict=True)), confidence=confidence)
    except Refused as error:
        raise Absent(f"there is no fairness: {error}") from error


def _scaled(estimate: Estimate, factor: float) -> Estimate:
    return estimate if factor == 1 else mapped(estimate, lambda value: value * factor)
