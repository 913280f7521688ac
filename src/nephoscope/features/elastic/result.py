"""Elasticity of the autoscalers of a stored run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nephoscope.core.grouping import group_by
from nephoscope.core.model import Better, Estimate
from nephoscope.features.balance.trials import balanced_trials
from nephoscope.features.elastic.records import (
    AutoscalerComparison,
    AutoscalerSummary,
    Elasticity,
    ElasticTrial,
)
from nephoscope.features.elastic.trials import autoscaler_of, elastic_trial
from nephoscope.features.elastic.validity import notes_of, problems_of
from nephoscope.results.run_data import RunData
from nephoscope.stats import compare, elasticity
from nephoscope.stats.statistics import estimates, means
from nephoscope.stats.statistics.values import Refused

TOTAL = "total"
"""Name of the time from the demand to the rotation among the segments."""


def analyse(data: RunData) -> Elasticity | None:
    """Returns the elasticity of a run's autoscalers; None where no trial has one and a profile."""
    pairs = [
        (trial, scaler)
        for trial in balanced_trials(data)
        if trial.params.get("step_rates_per_s") and (scaler := autoscaler_of(trial)) is not None
    ]
    trials = [made for trial, scaler in pairs if (made := elastic_trial(trial, scaler)) is not None]
    if not trials:
        return None
    confidence = data.confidence
    problems: dict[str, list[str]] = {}
    notes: dict[str, list[str]] = {}
    by_key = {(trial.autoscaler, trial.round): trial for trial in trials}
    for trial, scaler in pairs:
        own = by_key.get((scaler.name, trial.round))
        if own is not None:
            problems.setdefault(scaler.name, []).extend(problems_of(own, trial, scaler))
            notes.setdefault(scaler.name, []).extend(notes_of(own, trial, scaler))
    first = pairs[0][1]
    groups = group_by(trials, lambda trial: trial.autoscaler)
    # The order of the plan, in which the first is the reference.
    names = [load["name"] for load in data.manifest.plan["backgrounds"] if load["name"] in groups]
    summaries = tuple(
        _summary(groups[name], problems[name], notes[name], confidence) for name in names
    )
    return Elasticity(
        client=pairs[0][0].records[0].key.target,
        objective=str(first.params["objective"]),
        capacity_per_s=float(first.params["capacity_per_s"]),
        autoscalers=summaries,
        comparisons=tuple(_comparisons([groups[name] for name in names], summaries, confidence)),
        trials=tuple(trials),
    )


def _summary(
    trials: Sequence[ElasticTrial],
    problems: Sequence[str],
    notes: Sequence[str],
    confidence: float,
) -> AutoscalerSummary:
    outward = [change for trial in trials for change in trial.changes if change.size > 0]
    inward = [change for trial in trials for change in trial.changes if change.size < 0]
    intervals = [each * 1e9 for trial in trials for each in trial.decision_intervals_s]
    requests = [(trial.slow + trial.failed) / max(1, trial.due) for trial in trials]
    times = [trial.violated_s / trial.duration_s for trial in trials]
    costs = [trial.billed_s / trial.minimum_billed_s for trial in trials]
    return AutoscalerSummary(
        autoscaler=trials[0].autoscaler,
        rounds=len(trials),
        measures=elasticity.over_repetitions(
            [trial.measures for trial in trials], confidence=confidence
        ),
        out_segments=_segments(outward, confidence),
        in_segments=_segments(inward, confidence),
        decision_interval=_median(intervals, "ns", confidence) if intervals else None,
        violated_requests=_mean(requests, "ratio", confidence),
        violated_time=_mean(times, "ratio", confidence),
        cost=_mean(costs, "ratio", confidence),
        oscillating_rounds=sum(bool(trial.oscillations) for trial in trials),
        problems=tuple(dict.fromkeys(problems)),
        notes=tuple(dict.fromkeys(notes)),
    )


def _median(values: Sequence[float], unit: str, confidence: float) -> Estimate:
    return estimates.median(values, unit=unit, confidence=confidence)


def _mean(values: Sequence[float], unit: str, confidence: float) -> Estimate:
    return means.mean_t(values, unit=unit, confidence=confidence, least=means.least_of(values))


def _segments(
    changes: Sequence[elasticity.ScalingTimes], confidence: float
) -> Mapping[str, Estimate]:
    """Returns the median of each segment that was observed, over all changes."""
    values: dict[str, list[float]] = {}
    for change in changes:
        for name, length_s in {**change.segments_s(), TOTAL: change.total_s()}.items():
            if length_s is not None:
                values.setdefault(name, []).append(length_s * 1e9)
    order = (*elasticity.SEGMENTS, TOTAL)
    return {name: _median(values[name], "ns", confidence) for name in order if name in values}


def _comparisons(
    groups: Sequence[Sequence[ElasticTrial]],
    summaries: Sequence[AutoscalerSummary],
    confidence: float,
) -> list[AutoscalerComparison]:
    """Each autoscaler against the first, round by round, corrected over all comparisons (Holm)."""
    first, *further = groups
    made = []
    for own, summary in zip(further, summaries[1:], strict=True):
        by_round = {trial.round: trial for trial in first}
        pairs = [(by_round[trial.round], trial) for trial in own if trial.round in by_round]
        if not pairs or summary.problems or summaries[0].problems:
            continue
        comparison = compare.paired(
            *(
                [(each.slow + each.failed) / max(1, each.due) for each in side]
                for side in zip(*pairs, strict=True)
            ),
            better=Better.LOWER,
            unit="ratio",
            confidence=confidence,
            names=(first[0].autoscaler, summary.autoscaler),
        )
        made.append(
            AutoscalerComparison(
                summary.autoscaler,
                first[0].autoscaler,
                comparison,
                _speed_up(first, own),
            )
        )
    corrected = compare.over_report([each.violations for each in made], confidence=confidence)
    return [replace(each, violations=new) for each, new in zip(made, corrected, strict=True)]


def _speed_up(reference: Sequence[ElasticTrial], own: Sequence[ElasticTrial]) -> float | None:
    """The elastic speed-up of the mean measures; None where one of them is 0."""
    try:
        return elasticity.speed_up(_mean_measures(reference), _mean_measures(own))
    except Refused:
        return None


def _mean_measures(trials: Sequence[ElasticTrial]) -> elasticity.ElasticityMeasures:
    return elasticity.ElasticityMeasures(
        **{
            name: sum(getattr(trial.measures, name) for trial in trials) / len(trials)
            for name in elasticity.MEASURE_UNITS
        }
    )
