"""Our side of a comparison: the estimate that a run's result holds for it."""

from __future__ import annotations

from collections.abc import Mapping as Map
from dataclasses import replace
from itertools import pairwise
from typing import Any

from nephoscope.analysis import compare, variation
from nephoscope.analysis.values import Refused
from nephoscope.model import Better, Estimate, MetricResult, RunResult
from nephoscope.results.names import BESIDE
from nephoscope.studies.records import Ours, Pick


class Absent(Exception):  # not an error: an answer that the run does not hold
    """The run holds no such estimate; the text is a sentence that says why."""


def estimate(result: RunResult, ours: Ours) -> Estimate:
    """Value or ratio with its interval, in the study's unit. Absent when the run lacks it."""
    if ours.over is None or ours.under is None:
        return _times(line(result, ours, Pick()).estimate, ours.times)
    above, below = line(result, ours, ours.over), line(result, ours, ours.under)
    confidence = float(result.run["confidence"])
    ratio = _spread(above, below, confidence) if ours.spread else _ratio(above, below, confidence)
    return _times(ratio, ours.times)


def steps(result: RunResult, ours: Ours, order: tuple[str, ...]) -> list[Estimate]:
    """Ratio of each name of the order to the next one. Absent when the run lacks one of them."""
    lines = [line(result, ours, ours.order[name]) for name in order]
    confidence = float(result.run["confidence"])
    return [_ratio(one, next_one, confidence) for one, next_one in pairwise(lines)]


def line(result: RunResult, ours: Ours, pick: Pick) -> MetricResult:
    """The one line of the result that is meant."""
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
        raise Absent(f"the run has {len(found)} lines of {wanted}; study.yaml must name one")
    return found[0]


def _holds(have: Map[str, Any], wanted: Map[str, Any]) -> bool:
    return all(name in have and _same(have[name], level) for name, level in wanted.items())


def _same(one: Any, other: Any) -> bool:
    """Levels are equal as values, or as the texts that a plan gives ('150ms' stays a text)."""
    return bool(one == other) or str(one) == str(other)


def _levels(factors: Map[str, Any]) -> str:
    levels = ", ".join(f"{name}={level}" for name, level in factors.items())
    return f" ({levels})" if levels else ""


def _ratio(above: MetricResult, below: MetricResult, confidence: float) -> Estimate:
    """How many times `below` is `above`: by rounds where they share some, else as two samples."""
    one = below.by_round
    other = above.by_round
    shared = sorted(one.keys() & other.keys())
    try:
        if len(shared) >= compare.LEAST_PAIRED:
            found = compare.paired(
                [one[r] for r in shared],
                [other[r] for r in shared],
                better=Better.NONE,
                confidence=confidence,
            )
        else:
            found = compare.independent(
                below.trial_values, above.trial_values, better=Better.NONE, confidence=confidence
            )
    except Refused as error:
        raise Absent(f"there is no ratio: {error}") from error
    if found.ratio is None:
        raise Absent("there is no ratio: the values are not all above zero")
    return found.ratio


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
