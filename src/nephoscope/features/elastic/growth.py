"""The growth of a service, from its ramps: where the knee lies, and when it moved."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

import numpy as np

from nephoscope.core.errors import UsageError
from nephoscope.core.model import Better, Estimate
from nephoscope.core.naming import plural
from nephoscope.features.balance.trials import BalancedTrial, balanced_trials
from nephoscope.features.elastic.growth_plan import LEAD_STEPS, OBJECTIVE
from nephoscope.features.elastic.growth_records import GrowthLevel, Ramp, RampStep, ServiceGrowth
from nephoscope.features.elastic.trials import PERCENTILES
from nephoscope.features.elastic.validity import late_sender
from nephoscope.features.load.capacity_search import RateRange, estimate
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.features.load.records import TrialOutcome
from nephoscope.results.names import UNANSWERED
from nephoscope.results.run_data import RunData
from nephoscope.stats import compare, level_shifts
from nephoscope.stats.statistics import means
from nephoscope.stats.statistics.values import Refused

_NO_SERVER_FAULT = frozenset({"any", "unsent", "unasked_bytes"})
"""Kinds of errors that are no failure of the service, and the sum of all."""
_SLOW_SHARE = 0.1
"""Share of the late requests that were slow from their sending on: below it, the late ones waited
for a connection, and the service answers as fast as ever."""
_METHOD = "mean of the ramps (t), widened by half of a step of the ramp"


def analyse(data: RunData) -> ServiceGrowth | None:
    """Returns the growth of the service of a run; None where no ramp counts, and of a run of
    another plan that has such a name and label."""
    try:
        objective = LatencyObjective.of(data.manifest.labels[OBJECTIVE])
    except UsageError:
        return None
    trials = [
        trial
        for trial in balanced_trials(data)
        if len(trial.params.get("step_rates_per_s") or ()) > LEAD_STEPS + 1
        and "interval_ns" in trial.params
        and objective.share_ratio in PERCENTILES
    ]
    return growth_of(trials, objective, data.confidence) if trials else None


def growth_of(
    trials: Sequence[BalancedTrial], objective: LatencyObjective, confidence: float
) -> ServiceGrowth:
    """Returns the growth that ramps show; one at least."""
    first_s = min(_began_s(trial) for trial in trials)
    ramps = sorted(
        (_ramp(trial, objective, first_s, confidence) for trial in trials),
        key=lambda ramp: ramp.began_s,
    )
    generators = max(ramp.generators for ramp in ramps)
    rates = [step.rate_per_s for step in ramps[0].steps]
    step_ratio = (rates[-1] / rates[0]) ** (1 / (len(rates) - 1)) - 1
    own = [ramp for ramp in ramps if ramp.generators == generators]
    judged = [ramp for ramp in own if not ramp.limit]
    limits = [ramp.limit for ramp in own if ramp.limit]
    notes = []
    if judged and limits:
        notes.append(f"{len(limits)} of {plural(len(own), 'ramp')} left out: {limits[0]}")
    if judged and len(judged) < level_shifts.FEWEST:
        notes.append(
            f"{plural(len(judged), 'ramp')} cannot show a move: {level_shifts.FEWEST} are needed. "
            "Use more --rounds."
        )
    levels = _levels(judged, step_ratio, confidence) if judged else []
    until = len(judged) - levels[-1].ramps if len(levels) > 1 else len(judged)
    served = [
        step
        for ramp in judged[:until]
        for step in ramp.steps
        if step.rate_per_s <= levels[-1].knee.value
    ]
    return ServiceGrowth(
        client=trials[0].records[0].key.target,
        url=str(trials[0].params["url"]),
        objective=str(objective),
        generators=generators,
        levels=tuple(levels),
        ramps=tuple(ramps),
        step_ratio=step_ratio,
        due=round(sum(step.rate_per_s * step.length_s for step in served)),
        failed=round(sum(step.errors for step in served)),
        generators_compared=_compared(ramps, generators, confidence),
        problems=() if judged else (limits[0],),
        notes=tuple(notes),
    )


def _began_s(trial: BalancedTrial) -> float:
    record = trial.records[0]
    return record.started_at + record.timeline.get("measure", (0, 0))[0] / 1e9


def _ramp(
    trial: BalancedTrial, objective: LatencyObjective, first_s: float, confidence: float
) -> Ramp:
    steps = tuple(_steps(trial, objective))
    limit = _generator_limit(trial, steps, objective)
    evident = _evident_rates(steps, objective.share_ratio)
    outcomes = [
        TrialOutcome(rate, step.is_met, None, bool(limit))
        for rate, step in zip(evident, steps, strict=True)
    ]
    rates = [step.rate_per_s for step in steps]
    knee = estimate(outcomes, RateRange(rates[0], rates[-1]), confidence)
    errors = trial.errors()
    return Ramp(
        round=trial.round,
        generators=trial.generators,
        began_s=_began_s(trial) - first_s,
        steps=steps,
        knee_per_s=knee.rate_per_s,
        low_per_s=knee.low,
        high_per_s=knee.high,
        is_above=knee.reaches_high_end,
        is_below=knee.reaches_low_end,
        due=int(trial.sum("due_count")),
        failed=sum(count for kind, count in errors.items() if kind != "unasked_bytes"),
        limit=limit,
    )


def _evident_rates(steps: Sequence[RampStep], share_ratio: float) -> list[float]:
    """Returns the rates for which the steps are evidence: what they offered, less what queued up.

    A step that met the objective may lie above the knee by what queued within it, and one that
    missed it, by a step at most, above what was served.
    """
    rates, before = [], steps[0]
    for step in steps:
        grown_s = step.latency_s or 0.0
        if not step.is_met:
            grown_s = max(0.0, grown_s - (before.latency_s or 0.0)) if not step.errors else 0.0
        rate = step.rate_per_s / (1 + grown_s / (share_ratio * step.length_s))
        rates.append(rate if step.is_met else max(rate, min(before.rate_per_s, step.rate_per_s)))
        before = step
    return rates


def _steps(trial: BalancedTrial, objective: LatencyObjective) -> Iterator[RampStep]:
    """Yields the steps behind the lead."""
    rates = trial.params["step_rates_per_s"]
    length_s = float(trial.params["interval_ns"]) / 1e9
    percentile = PERCENTILES[objective.share_ratio]
    responses, errors = [0.0] * len(rates), [0.0] * len(rates)
    latencies: list[list[float]] = [[] for _ in rates]
    for samples in trial.samples:
        for sample in samples:
            place = round(sample.at_ns / 1e9 / length_s) - 1  # reported when it is over
            if not (sample.metric.startswith("interval_") and 0 <= place < len(rates)):
                continue
            if sample.metric == "interval_requests_per_s":
                responses[place] += sample.value
            elif sample.metric == "interval_errors_count":
                errors[place] += sample.value
            elif sample.metric == percentile:
                latencies[place].append(sample.value / 1e9)
    for place in range(LEAD_STEPS, len(rates)):
        latency_s = median(latencies[place]) if latencies[place] and responses[place] else None
        is_met = (
            latency_s is not None
            and 1e9 * latency_s < objective.limit_ns
            and errors[place] <= (1 - objective.share_ratio) * rates[place] * length_s
        )
        yield RampStep(
            place * length_s, length_s, float(rates[place]), responses[place], latency_s,
            errors[place], is_met,
        )  # fmt: skip


def _generator_limit(
    trial: BalancedTrial, steps: Sequence[RampStep], objective: LatencyObjective
) -> str:
    """Returns that the generator and not the service missed the objective; else empty."""
    if all(step.is_met for step in steps):
        return ""
    if sentence := late_sender(trial, objective):
        return sentence
    faults = sum(count for kind, count in trial.errors().items() if kind not in _NO_SERVER_FAULT)
    late, unanswered, slow = (
        _beyond(trial, metric, objective.limit_ns)
        for metric in ("latency_ns", UNANSWERED["latency_ns"], "service_time_ns")
    )
    late -= unanswered
    is_served = slow < _SLOW_SHARE * late
    if is_served and faults <= (1 - objective.share_ratio) * trial.sum("due_count"):
        return (
            f"The load generator was at its limit: of {late:,} late requests the service answered "
            f"all but {slow:,} in time after their sending, but they waited for one of "
            f"{plural(trial.connections, 'connection')}. Use more connections (-c)."
        )
    return ""


def _beyond(trial: BalancedTrial, metric: str, limit_ns: float) -> int:
    """Returns the number of a trial's times beyond a limit."""
    return sum(
        sample.count
        for samples in trial.samples
        for sample in samples
        if sample.metric == metric and sample.value > limit_ns
    )


def _levels(ramps: Sequence[Ramp], step_ratio: float, confidence: float) -> list[GrowthLevel]:
    knees = np.log([ramp.knee_per_s for ramp in ramps])
    starts = level_shifts.level_starts(knees, smallest=math.log1p(step_ratio))
    groups = [ramps[start:end] for start, end in pairwise([*starts, len(ramps)])]
    levels = [_level(own, step_ratio, confidence) for own in groups]
    moments = [
        _moved(before[-1], after[0], level.knee.value, confidence)
        for (before, after), level in zip(pairwise(groups), levels, strict=False)
    ]
    return [
        levels[0],
        *(replace(level, since_s=at) for level, at in zip(levels[1:], moments, strict=True)),
    ]


def _level(ramps: Sequence[Ramp], step_ratio: float, confidence: float) -> GrowthLevel:
    knees, count = [ramp.knee_per_s for ramp in ramps], len(ramps)
    low, high = min(ramp.low_per_s for ramp in ramps), max(ramp.high_per_s for ramp in ramps)
    value = sum(knees) / count
    if count > 2:
        mean = means.mean_t(knees, unit="per_s", confidence=confidence)
        assert mean.low is not None
        assert mean.high is not None
        half = math.sqrt(1 + step_ratio)
        low, high = max(low, mean.low / half), min(high, mean.high * half)
    low, high = min(low, value), max(high, value)
    return GrowthLevel(
        Estimate(value, low, high, confidence, count, "per_s", _METHOD),
        None,
        count,
        sum(ramp.is_above for ramp in ramps) > count / 2,
        sum(ramp.is_below for ramp in ramps) > count / 2,
    )


def _moved(before: Ramp, after: Ramp, knee_per_s: float, confidence: float) -> Estimate:
    """Returns when the knee left a rate, between two ramps: after the step in which the first one
    missed the objective, and before the second one was beyond that rate."""
    missed = [
        step for step in before.steps if not step.is_met and step.rate_per_s >= before.knee_per_s
    ]
    last = missed[0].at_s if missed else before.steps[-1].at_s + before.steps[-1].length_s
    beyond = [step for step in after.steps if step.rate_per_s > knee_per_s]
    first = beyond[0].at_s + beyond[0].length_s if beyond else after.steps[0].at_s
    low, high = before.began_s + last, after.began_s + first
    return Estimate(
        (low + high) / 2, low, high, confidence, 1, "s", "between two ramps that differ"
    )


def _compared(
    ramps: Sequence[Ramp], generators: int, confidence: float
) -> compare.TwoSampleComparison | None:
    """Returns the knee with all generators against that with one, paired by round."""
    by_number: dict[int, dict[int, Ramp]] = {1: {}, generators: {}}
    for ramp in ramps:
        by_number[ramp.generators][ramp.round] = ramp
    alone, every = by_number[1], by_number[generators]
    rounds = [number for number in alone if number in every]
    if generators == 1 or not rounds:
        return None
    try:
        return compare.paired(
            [alone[number].knee_per_s for number in rounds],
            [every[number].knee_per_s for number in rounds],
            better=Better.HIGHER,
            unit="per_s",
            confidence=confidence,
            names=("one generator", plural(generators, "generator")),
        )
    except Refused:
        return None
