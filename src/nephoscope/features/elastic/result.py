"""Elasticity of the autoscalers of a stored run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from nephoscope.core.grouping import group_by
from nephoscope.core.model import Better, Estimate, Verdict
from nephoscope.core.naming import plural
from nephoscope.features.balance.trials import (
    BackgroundSamples,
    BalancedTrial,
    balanced_trials,
)
from nephoscope.features.elastic.credits import credits_of
from nephoscope.features.elastic.records import (
    AutoscalerComparison,
    AutoscalerSummary,
    Elasticity,
    ElasticTrial,
)
from nephoscope.features.elastic.trials import KINDS, autoscaler_of, elastic_trial
from nephoscope.features.elastic.validity import death_of, disturbances_of, notes_of, problems_of
from nephoscope.results.run_data import RunData
from nephoscope.stats import compare, elasticity
from nephoscope.stats.compare import TwoSampleComparison
from nephoscope.stats.statistics import means
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
    judged = _judged(trials, pairs)
    first = pairs[0][1]
    groups = group_by(trials, lambda trial: trial.autoscaler)
    # The order of the plan, in which the first is the reference.
    planned = [
        load["name"] for load in data.manifest.plan["backgrounds"] if load["benchmark"] in KINDS
    ]
    names = [name for name in planned if name in groups]
    groups = {name: judged[name][0] for name in names}
    counted = {name: {trial.round for trial in judged[name][0]} for name in judged}
    summaries = tuple(_summary(*judged[name], confidence) for name in names)
    elastic = Elasticity(
        client=pairs[0][0].records[0].key.target,
        objective=str(first.params["objective"]),
        capacity_per_s=float(first.params["capacity_per_s"]),
        autoscalers=summaries,
        comparisons=tuple(_comparisons([groups[name] for name in names], summaries, confidence)),
        trials=tuple(
            replace(trial, is_left_out=trial.round not in counted[trial.autoscaler])
            for trial in trials
        ),
        unmeasured=tuple(name for name in planned if name not in groups),
    )
    contract, bill = (str(first.params.get(name, "")) for name in ("contract", "bill"))
    return replace(elastic, credits=credits_of(elastic, contract, bill)) if contract else elastic


def _judged(
    trials: Sequence[ElasticTrial], pairs: Sequence[tuple[BalancedTrial, BackgroundSamples]]
) -> dict[str, tuple[list[ElasticTrial], list[str], list[str]]]:
    """Returns the rounds of each autoscaler that count, what forbids a judgement, and notes.

    Rounds that were disturbed are left out while others remain. One in which the service died is
    not: that is what it shows.
    """
    sources = {(scaler.name, trial.round): (trial, scaler) for trial, scaler in pairs}
    judged = {}
    for name, own in group_by(trials, lambda trial: trial.autoscaler).items():
        disturbed = {
            each.round: []
            if death_of(each)
            else list(disturbances_of(each, *sources[name, each.round]))
            for each in own
        }
        good = [each for each in own if not disturbed[each.round]]
        sentences = [sentence for each in own for sentence in disturbed[each.round]]
        rounds = good or own
        problems: list[str] = []
        notes: list[str] = []
        if good and sentences:
            left_out = f"{len(own) - len(good)} of {plural(len(own), 'round')}"
            notes.append(f"{left_out} left out: {sentences[0]}")
        for each in rounds:
            problems += problems_of(each)
            notes += notes_of(each, sources[name, each.round][1])
        problems += [] if good else sentences
        judged[name] = (rounds, _distinct(problems), _distinct(notes))
    return judged


def _distinct(sentences: Sequence[str]) -> list[str]:
    """Returns the sentences without those that differ from an earlier one in figures alone."""
    first: dict[str, str] = {}
    for sentence in sentences:
        first.setdefault(re.sub(r"[0-9.,]+( (ms|s|µs|min)\b)?", "", sentence), sentence)
    return list(first.values())


def _summary(
    trials: Sequence[ElasticTrial],
    problems: Sequence[str],
    notes: Sequence[str],
    confidence: float,
) -> AutoscalerSummary:
    requests = [(trial.slow + trial.failed) / max(1, trial.due) for trial in trials]
    times = [trial.violated_s / trial.duration_s for trial in trials]
    costs = [trial.billed_s / trial.minimum_billed_s for trial in trials]
    return AutoscalerSummary(
        autoscaler=trials[0].autoscaler,
        rounds=len(trials),
        measures=elasticity.over_repetitions(
            [trial.measures for trial in trials], confidence=confidence
        ),
        out_segments=_segments(trials, 1, confidence),
        in_segments=_segments(trials, -1, confidence),
        decision_interval=_times([each.decision_intervals_s for each in trials], confidence),
        violated_requests=_mean(requests, "ratio", confidence),
        violated_time=_mean(times, "ratio", confidence),
        cost=_mean(costs, "ratio", confidence),
        oscillating_rounds=sum(bool(trial.oscillations) for trial in trials),
        problems=tuple(problems),
        notes=tuple(notes),
        cost_bound=_cost_bound(trials),
    )


def _cost_bound(trials: Sequence[ElasticTrial]) -> float | None:
    """Returns the cost at the largest number of instances throughout, the same in every round."""
    bounds = [
        trial.bound_s / trial.minimum_billed_s for trial in trials if trial.bound_s is not None
    ]
    return bounds[0] if bounds else None


def _mean(values: Sequence[float], unit: str, confidence: float) -> Estimate:
    return means.mean_t(values, unit=unit, confidence=confidence, least=means.least_of(values))


def _times(rounds: Sequence[Sequence[float]], confidence: float) -> Estimate | None:
    """Returns the mean of the medians of the rounds that have times, in ns; None without any.

    Times of one round depend on each other, so that they are no repetitions.
    """
    medians = [1e9 * median(times) for times in rounds if times]
    return _mean(medians, "ns", confidence) if medians else None


def _segments(
    trials: Sequence[ElasticTrial], sign: int, confidence: float
) -> Mapping[str, Estimate]:
    """Returns the time of each segment that was observed of changes in a direction."""
    rounds = [
        [
            {**change.segments_s(), TOTAL: change.total_s()}
            for change in trial.changes
            if change.size * sign > 0
        ]
        for trial in trials
    ]
    estimates = {}
    for name in (*elasticity.SEGMENTS, TOTAL):
        own = [[length for each in times if (length := each[name]) is not None] for times in rounds]
        if (estimate := _times(own, confidence)) is not None:
            estimates[name] = estimate
    return estimates


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
                _judged_by_difference(comparison),
                _speed_up(first, own),
            )
        )
    corrected = compare.over_report([each.violations for each in made], confidence=confidence)
    return [replace(each, violations=new) for each, new in zip(made, corrected, strict=True)]


def _judged_by_difference(comparison: TwoSampleComparison) -> TwoSampleComparison:
    """Returns the comparison, judged by the difference where the first autoscaler violates nothing.

    No ratio exists then, and any share of the other one is more.
    """
    difference = comparison.difference
    if comparison.ratio or difference is None:
        return comparison
    if comparison.n_a < comparison.least:
        sentence = f"Measure at least {comparison.least} rounds of both."
        return replace(comparison, verdict=Verdict("inconclusive", sentence, (difference,)))
    if difference.low is None or difference.low <= 0:
        return comparison
    sentence = "The first violates the objective in no more than half of the rounds."
    verdict = Verdict("worse", sentence, (difference,))
    return replace(comparison, verdict=verdict, p_ratio=comparison.p_wilcoxon)


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
