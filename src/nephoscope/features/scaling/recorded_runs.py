"""Stored experiments on elasticity as traces: their load, the decisions, and the service."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nephoscope.autoscalers import rules
from nephoscope.autoscalers.rules import ScalingObservation, ScalingRule
from nephoscope.catalog import instruments
from nephoscope.core.errors import UsageError
from nephoscope.core.grouping import group_by
from nephoscope.features.balance.trials import BackgroundSamples, BalancedTrial, balanced_trials
from nephoscope.features.elastic.records import ElasticTrial
from nephoscope.features.elastic.result import analyse
from nephoscope.features.elastic.trial_clock import TrialClock
from nephoscope.features.elastic.trials import autoscaler_of, demand_of
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.features.scaling import grid
from nephoscope.features.scaling.grid import RuleCandidate
from nephoscope.features.scaling.traces import RecordedDecision, ScalerRecording, Trace
from nephoscope.stats.elasticity import StepFunction
from nephoscope.stats.instance_demand import ScaledService
from nephoscope.stats.queueing import ResponseObjective

_RESOLUTION_S = 0.05
"""The autoscaler polls every 20 ms, and logs a decision after it has made it."""
_Series = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The autoscalers of a stored run: the load with the decisions of the first one, the rule of
    each with its trials, and the service with the delays that the plan states."""

    trace: Trace
    rules: tuple[RuleCandidate, ...]
    objective: LatencyObjective
    service: ScaledService


def read(name: str, store: Path | None) -> RecordedRun:
    """Returns the reference autoscalers of a stored run, without the trials that it left out.

    Raises UsageError for a run without any.
    """
    from nephoscope.results import analyse_run
    from nephoscope.store import Store

    run = Store(store).open(name)
    data = analyse_run.run_data(run)
    elastic = analyse(data)
    judged = {
        (each.autoscaler, each.round): each
        for each in (() if elastic is None else elastic.trials)
        if not each.is_left_out
    }
    pairs = [
        (trial, scaler)
        for trial in balanced_trials(data)
        if trial.params.get("step_rates_per_s")
        and (scaler := autoscaler_of(trial)) is not None
        and scaler.benchmark == instruments.AUTOSCALER_REFERENCE
        and (scaler.name, trial.round) in judged
    ]
    if not pairs:
        raise UsageError(
            f"{run.id} has no trial of a reference autoscaler.",
            "Name a run of `nephoscope elastic --rule RULE`, or a trace as a CSV file.",
        )
    assert elastic is not None
    by_name = group_by(pairs, lambda pair: pair[1].name)
    candidates = []
    names = [each.autoscaler for each in elastic.autoscalers if each.autoscaler in by_name]
    for name in names:
        rule = rules.rule_of(json.loads(by_name[name][0][1].params["rule"]))
        own = (
            _recording(trial, scaler, rule, judged[name, trial.round])
            for trial, scaler in by_name[name]
        )
        candidates.append(grid.recorded(rule, tuple(own)))
    trial, scaler = by_name[names[0]][0]
    objective = LatencyObjective.of(str(scaler.params["objective"]))
    recordings = candidates[0].recordings
    return RecordedRun(
        _trace(f"{run.id} ({names[0]})", trial, scaler, recordings),
        tuple(candidates),
        objective,
        _service(data.manifest.plan["backgrounds"], pairs, scaler, objective, recordings[0]),
    )


def _trace(
    name: str,
    trial: BalancedTrial,
    scaler: BackgroundSamples,
    recordings: tuple[ScalerRecording, ...],
) -> Trace:
    rates = [float(rate) for rate in trial.params["step_rates_per_s"]]
    duration_s = float(trial.params["duration_ns"]) / 1e9
    part_s = duration_s / len(rates)
    times = tuple(place * part_s for place in range(len(rates)))
    demand = demand_of(rates, part_s, float(scaler.params["capacity_per_s"]))
    return Trace(name, StepFunction(times, tuple(rates)), duration_s, recordings, demand)


def _service(
    backgrounds: Sequence[dict[str, object]],
    pairs: Sequence[tuple[BalancedTrial, BackgroundSamples]],
    scaler: BackgroundSamples,
    objective: LatencyObjective,
    recording: ScalerRecording,
) -> ScaledService:
    machine = next(
        load for load in backgrounds if load["benchmark"] == instruments.AUTOSCALER_INSTANCE
    )
    params = machine["params"]
    assert isinstance(params, dict)
    seconds = {
        name: float(scaler.params[f"{name}_ns"]) / 1e9
        for name in ("boot", "warm_up", "metric_lag", "metric_interval", "decision_interval")
    }
    return ScaledService(
        # A request that works uses one CPU at most, and no more than the machine has.
        services_per_s=1e9
        * min(float(params.get("workers", 1)), float(scaler.params["cpus"]))
        / float(params["service_mean_ns"]),
        objective=ResponseObjective(objective.limit_ns / 1e9, objective.share_ratio),
        boot_s=seconds["boot"],
        warm_up_s=seconds["warm_up"],
        lag_s=seconds["metric_lag"],
        window_s=seconds["metric_interval"],
        interval_s=seconds["decision_interval"],
        billed_s=float(scaler.params["billing_ns"]) / 1e9,
        start_count=max(1, round(recording.supply.counts[0])),
        first_decision_s=recording.first_decision_s,
        first_value_s=recording.first_value_s,
        cpu_ratio=_request_cpu_ns(pairs) / float(params["service_mean_ns"]) or 1.0,
        arrivals_cv=float(pairs[0][0].params["arrivals"] == "poisson"),
        service_cv=float(params.get("distribution") == "exponential"),
        shared_queue=False,
    )


def _request_cpu_ns(pairs: Sequence[tuple[BalancedTrial, BackgroundSamples]]) -> float:
    """Returns the CPU time of a request as rules by CPU time saw it; 0 where no rule did.

    It is a few percent more than requests work, since instances also receive and answer them.
    """
    used_s = completed = 0.0
    for trial, scaler in pairs:
        if rules.rule_of(json.loads(scaler.params["rule"])).metric != rules.CPU:
            continue
        clock = TrialClock(trial, scaler)
        ready = [
            (at_s, sample.value)
            for at_s, sample in clock.series("instances_count", state="in_rotation")
        ]
        share = float(scaler.params["cpus"]) * float(scaler.params["metric_interval_ns"]) / 1e9
        lag_s = float(scaler.params["metric_lag_ns"]) / 1e9
        used_s += share * sum(
            sample.value * max(1.0, _before(ready, at_s - lag_s) or 1.0)
            for at_s, sample in clock.series("rule_value")
            if lag_s < at_s <= lag_s + float(trial.params["duration_ns"]) / 1e9
        )
        completed += trial.sum("completed_count")
    return 1e9 * used_s / completed if completed else 0.0


def _recording(
    trial: BalancedTrial,
    scaler: BackgroundSamples,
    rule: ScalingRule,
    judged: ElasticTrial | None = None,
) -> ScalerRecording:
    """Returns the decisions of a trial with what the rule saw, also those before the load began."""
    clock = TrialClock(trial, scaler)

    def levels(metric: str, **factors: str) -> _Series:
        return [(at_s, sample.value) for at_s, sample in clock.series(metric, **factors)]

    present, ready = (
        levels("instances_count", state=state) for state in ("present", "in_rotation")
    )
    values = levels("rule_value")
    lag_s = float(scaler.params["metric_lag_ns"]) / 1e9
    rates = tuple(
        (at_s, value * max(1.0, _before(ready, at_s - lag_s) or 1.0)) for at_s, value in values
    )
    supply = clock.counts("in_rotation")
    if supply is None:
        raise UsageError(f"A trial of {scaler.name} has no instances.", "See its log.")
    decisions = []
    for at_s, sample in clock.series("desired_count"):
        seen = ScalingObservation(
            at_s,
            round(_before(present, at_s) or 0.0),
            round(_before(ready, at_s) or 0.0),
            _before(values, at_s),
            rates[: bisect_right(values, at_s, key=_time)]
            if rule.policy == rules.PREDICTIVE
            else (),
        )
        decisions.append(RecordedDecision(seen, round(sample.value)))
    # The first window that ends within the load, of which a value is visible a lag later.
    values_s = (at_s - lag_s for at_s, _ in values)
    return ScalerRecording(
        tuple(decisions),
        supply,
        _RESOLUTION_S,
        next((each.observation.at_s for each in decisions if each.observation.at_s > 0), None),
        next((at_s for at_s in values_s if at_s > 0), None),
        None if judged is None else (judged.slow + judged.failed) / max(1, judged.due),
        None if judged is None else judged.billed_s / 3600,
    )


def _time(entry: tuple[float, float]) -> float:
    return entry[0]


def _before(series: _Series, at_s: float) -> float | None:
    """Returns the last value before a time; None where there is none."""
    place = bisect_left(series, at_s, key=_time)
    return series[place - 1][1] if place else None
