"""Trials of an experiment on elasticity, from the samples of generator and autoscaler."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from nephoscope import catalog
from nephoscope.catalog import instruments
from nephoscope.features.balance.trials import BackgroundSamples, BalancedTrial
from nephoscope.features.elastic.plan import attack_of
from nephoscope.features.elastic.records import DecisionPoint, ElasticTrial, LoadInterval
from nephoscope.features.elastic.scaling_times import scaling_times
from nephoscope.features.elastic.trial_clock import TrialClock, changes_only
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.results.names import UNANSWERED
from nephoscope.stats import elasticity
from nephoscope.stats.elasticity import StepFunction

KINDS = frozenset(
    {
        instruments.AUTOSCALER_REFERENCE,
        instruments.AUTOSCALER_OBSERVED,
        instruments.AUTOSCALER_MANAGED,
    }
)
_ENDS = frozenset({"removed", "died", "failed"})
"""Steps with which a machine is no longer paid."""
PERCENTILES = {0.5: "interval_latency_p50_ns", 0.99: "interval_latency_p99_ns"}
"""Metrics of an interval, by the share of an objective."""


def autoscaler_of(trial: BalancedTrial) -> BackgroundSamples | None:
    """Returns the autoscaler of a trial, with the defaults of its parameters; None without one."""
    own = next((each for each in trial.counters.values() if each.benchmark in KINDS), None)
    if own is None:
        return None
    spec = catalog.load().benchmark(own.benchmark)
    defaults = {param.id: param.default for param in spec.params}
    return replace(own, params={**defaults, **own.params})


def demand_of(rates_per_s: Sequence[float], part_s: float, capacity_per_s: float) -> StepFunction:
    """Returns the number of instances that each rate needs, one at least."""
    levels = {
        place * part_s: float(max(1, math.ceil(rate / capacity_per_s - 1e-9)))
        for place, rate in enumerate(rates_per_s)
    }
    return changes_only(levels)


def elastic_trial(trial: BalancedTrial, scaler: BackgroundSamples) -> ElasticTrial | None:
    """Returns what a trial shows; None where the number of instances was never observed."""
    params = trial.params
    rates = [float(rate) for rate in params["step_rates_per_s"]]
    duration_s = float(params["duration_ns"]) / 1e9
    part_s = duration_s / len(rates)
    clock = TrialClock(trial, scaler)
    supply = clock.counts("in_rotation")
    if supply is None:
        return None
    capacity_per_s = float(scaler.params["capacity_per_s"])
    demand = demand_of(rates, part_s, capacity_per_s)
    attack_per_s = float(scaler.params.get("attack_per_s", 0.0))
    attack = attack_of(len(rates), attack_per_s)
    needed = [rate - more for rate, more in zip(rates, attack, strict=True)]
    objective = LatencyObjective.of(str(scaler.params["objective"]))
    unit_s = float(scaler.params["billing_ns"]) / 1e9
    changes = scaling_times(clock, supply, demand, duration_s)
    timeline = tuple(_timeline(trial, objective, rates, part_s))
    length_s = float(params["interval_ns"]) / 1e9
    decided = clock.series("desired_count")
    # Of others, only decisions that changed something are visible.
    is_whole = scaler.benchmark == instruments.AUTOSCALER_REFERENCE
    every = [at_s for at_s, _ in decided] if is_whole else []
    slow, failed = _violations(trial, objective)
    return ElasticTrial(
        autoscaler=scaler.name,
        round=trial.round,
        duration_s=duration_s,
        supply=_within(supply, duration_s),
        demand=_within(demand, duration_s),
        measures=elasticity.measures(supply, demand, 0.0, duration_s),
        changes=changes,
        oscillations=elasticity.oscillations(
            supply, demand, 0.0, duration_s, reaction_s=_reaction_s(changes)
        ),
        due=int(trial.sum("due_count")),
        slow=slow,
        failed=failed,
        violated_s=length_s * sum(interval.is_violated for interval in timeline),
        billed_s=elasticity.billed_s(_lives(clock, supply, duration_s), unit_s),
        minimum_billed_s=elasticity.clairvoyant_billed_s(
            demand_of(needed, part_s, capacity_per_s), 0.0, duration_s, unit_s
        ),
        decision_intervals_s=tuple(after - before for before, after in pairwise(every)),
        decisions=tuple(_decisions(clock, duration_s)),
        timeline=timeline,
        bound_s=_bound_s(scaler, duration_s, unit_s),
        attack_per_s=attack_per_s,
    )


def _lives(clock: TrialClock, supply: StepFunction, end_s: float) -> elasticity.Lives:
    """Returns the paid time of each machine within the trial; of an autoscaler that logs no steps,
    that of instances of which the youngest are removed first."""
    steps = clock.series("steps_count")
    if not steps:
        return elasticity.lives(supply, 0.0, end_s)
    begun: dict[str, float] = {}
    ended: list[tuple[float, float]] = []
    for at_s, sample in steps:
        machine, name = str(sample.factors["machine"]), sample.factors["step"]
        if name == "created":
            begun[machine] = at_s
        elif name in _ENDS and machine in begun:
            ended.append((begun.pop(machine), at_s))
    every = [*ended, *((begin_s, end_s) for begin_s in begun.values())]
    within = [(max(0.0, begin_s), min(last_s, end_s)) for begin_s, last_s in every]
    return [(begin_s, last_s) for begin_s, last_s in within if begin_s < last_s]


def _bound_s(scaler: BackgroundSamples, duration_s: float, unit_s: float) -> float | None:
    """Returns what the largest number of instances would be billed; None where none is known.

    It bounds a bill by the second; with longer units, instances that come and go are billed more.
    """
    maximum = json.loads(str(scaler.params.get("rule", "{}"))).get("maximum")
    if maximum is None:
        return None
    return elasticity.billed_s([(0.0, duration_s)] * int(maximum), unit_s)


def _reaction_s(changes: Iterable[elasticity.ScalingTimes]) -> float:
    """The longest time that a change of the demand was seen to take; 0 where none was answered."""
    totals = [total for change in changes if (total := change.total_s()) is not None]
    return max(totals, default=0.0)


def _within(curve: StepFunction, end_s: float) -> tuple[tuple[float, float], ...]:
    pairs = zip(curve.times_s, curve.counts, strict=True)
    return tuple((at_s, count) for at_s, count in pairs if at_s < end_s)


def _decisions(clock: TrialClock, end_s: float) -> Iterable[DecisionPoint]:
    wanted = {at_s: sample.value for at_s, sample in clock.series("wanted_count")}
    for at_s, sample in clock.series("desired_count"):
        if 0 <= at_s < end_s:
            reason = str(sample.factors["reason"])
            yield DecisionPoint(at_s, int(wanted[at_s]), int(sample.value), reason)


def _violations(trial: BalancedTrial, objective: LatencyObjective) -> tuple[int, int]:
    """Returns the requests with a late response, and those that failed or had none."""
    late = unanswered = 0
    for samples in trial.samples:
        for sample in samples:
            if sample.metric == "latency_ns" and sample.value > objective.limit_ns:
                late += sample.count
            elif sample.metric == UNANSWERED["latency_ns"] and sample.value > objective.limit_ns:
                unanswered += sample.count
    failed = sum(count for kind, count in trial.errors().items() if kind != "unasked_bytes")
    return late - unanswered, failed


def _timeline(
    trial: BalancedTrial, objective: LatencyObjective, rates: Sequence[float], part_s: float
) -> Iterable[LoadInterval]:
    length_s, limit_s = float(trial.params["interval_ns"]) / 1e9, objective.limit_ns / 1e9
    latency = PERCENTILES[objective.share_ratio]
    values: dict[int, dict[str, float]] = {}
    for samples in trial.samples:
        for sample in samples:
            if sample.metric.startswith("interval_"):
                place = round(sample.at_ns / 1e9 / length_s) - 1  # reported when it is over
                values.setdefault(place, {})[sample.metric] = sample.value
    silent_since_s = 0.0
    for place, own in sorted(values.items()):
        begin_s, at_s = place * length_s, (place + 1) * length_s
        offered = rates[min(int((begin_s + length_s / 2) / part_s), len(rates) - 1)]
        served, errors = own.get("interval_requests_per_s", 0.0), own["interval_errors_count"]
        latency_s = own[latency] / 1e9 if latency in own and served else None
        is_slow = latency_s is not None and latency_s > limit_s
        # Without a response the objective is missed once a request has waited for its limit.
        silent_since_s = at_s if served else silent_since_s
        is_silent = at_s - silent_since_s > limit_s + 1 / offered
        is_violated = is_slow or (not served and (errors > 0 or is_silent))
        yield LoadInterval(at_s, offered, served, latency_s, errors, is_violated)
