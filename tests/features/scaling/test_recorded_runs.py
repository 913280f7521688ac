"""Stored experiments on elasticity as traces with decisions."""

from __future__ import annotations

import json
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import pytest

from nephoscope.autoscalers import rules
from nephoscope.autoscalers.rules import Scaler, ScalingObservation, ScalingRule
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Sample
from nephoscope.features.balance.trials import BackgroundSamples, BalancedTrial
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.features.scaling import recorded_runs, request
from nephoscope.stats.elasticity import StepFunction

BEGUN_S = 1_000.0
"""When the generator begins; the autoscaler began 7 s before."""


def made(rule: ScalingRule, lines: list[tuple[float, str, float]]) -> tuple[Any, BackgroundSamples]:
    """A trial and its autoscaler. lines: seconds since the begin of the load, metric, value."""
    samples = [Sample("started_wall_ns", (BEGUN_S - 7) * 1e9)]
    for at_s, metric, value in lines:
        name, _, state = metric.partition(":")
        factors = {"state": state} if state else {}
        if name == "desired_count":
            factors = {"reason": "rule"}
        samples.append(Sample(name, value, at_ns=round((at_s + 7) * 1e9), factors=factors))
    params = {
        "rule": json.dumps(asdict(rule)),
        "metric_lag_ns": 0,
    }
    record = SimpleNamespace(started_at=BEGUN_S, timeline={"measure": (0, 60 * 10**9)})
    trial = BalancedTrial(0, "", [record], [])  # type: ignore[list-item]
    return trial, BackgroundSamples("rule", "autoscaler.reference", params, samples)


def test_a_decision_sees_what_was_visible_and_running_before_it() -> None:
    rule = ScalingRule(rules.RATE, target=10.0, maximum=9, cooldown_in_s=12)
    lines = [
        (-7.0, "instances_count:present", 1.0),
        (-7.0, "instances_count:in_rotation", 1.0),
        (-5.0, "desired_count", 1.0),
        (1.0, "rule_value", 35.0),
        (5.0, "desired_count", 4.0),
        (5.001, "instances_count:present", 4.0),
        (9.0, "instances_count:in_rotation", 3.0),
        (9.5, "rule_value", 11.6),
        (10.0, "desired_count", 4.0),
        (10.5, "instances_count:in_rotation", 4.0),
        (14.0, "rule_value", 2.0),
        (15.0, "desired_count", 4.0),
        (20.0, "desired_count", 1.0),
        (20.001, "instances_count:present", 1.0),
    ]
    recording = recorded_runs._recording(*made(rule, lines), rule)
    seen = [each.observation for each in recording.decisions]
    assert seen[1:4] == [
        ScalingObservation(5.0, 1, 1, 35.0),
        ScalingObservation(10.0, 4, 3, 11.6),
        ScalingObservation(15.0, 4, 4, 2.0),
    ]
    assert seen[0].value is None
    scaler = Scaler(rule)
    again = [scaler.decide(each.observation).desired for each in recording.decisions]
    assert again == [each.desired for each in recording.decisions]
    assert recording.supply.changes(0, 60) == [(9.0, 2.0), (10.5, 1.0)]
    assert (recording.first_decision_s, recording.first_value_s) == (5.0, 1.0)


def test_a_forecast_gets_the_rates_of_all_instances() -> None:
    rule = ScalingRule(rules.RATE, rules.PREDICTIVE, 10.0, maximum=9, history_s=60, horizon_s=10)
    lines = [
        (-7.0, "instances_count:present", 2.0),
        (-7.0, "instances_count:in_rotation", 2.0),
        (1.0, "rule_value", 10.0),
        (2.0, "rule_value", 11.0),
        (3.0, "desired_count", 5.0),
        (4.0, "rule_value", 50.0),
    ]
    (decision,) = recorded_runs._recording(*made(rule, lines), rule).decisions
    assert decision.observation.rates == ((1.0, 20.0), (2.0, 22.0))
    # 22/s at 2 s, 2/s more each second: 44/s at 13 s.
    assert rules.wanted_of(rule, decision.observation) == 5


@pytest.mark.parametrize(("cpus", "services_per_s"), [(1.0, 250.0), (0.2, 50.0), (2.0, 250.0)])
def test_a_machine_serves_no_faster_than_its_cpus(cpus: float, services_per_s: float) -> None:
    names = ("boot", "warm_up", "metric_lag", "metric_interval", "decision_interval")
    params = {f"{name}_ns": 1e9 for name in names} | {"cpus": cpus, "billing_ns": 1e9}
    params["rule"] = json.dumps(asdict(ScalingRule(rules.RATE)))
    scaler = BackgroundSamples("rule", "autoscaler.reference", params, [])
    machine = {
        "benchmark": "autoscaler.instance",
        "params": {"service_mean_ns": 4_000_000, "workers": 1},
    }
    trial, _ = made(ScalingRule(), [])
    trial.records[0].params = {"arrivals": "constant"}
    recording = recorded_runs.ScalerRecording((), StepFunction((0.0,), (1.0,)))
    objective = LatencyObjective.of("p99 < 200ms")
    pairs = [(trial, scaler)]
    service = recorded_runs._service([machine], pairs, scaler, objective, recording)
    assert (service.services_per_s, service.cpu_ratio) == (services_per_s, 1.0)


def test_cpu_time_beyond_the_requests_is_what_the_metric_shows_in_excess() -> None:
    """Two instances of a fifth of a CPU, half used in 2 of 60 s: 0.4 s for 80 requests."""
    rule = ScalingRule(rules.CPU)
    lines = [
        (-7.0, "instances_count:in_rotation", 2.0),
        (0.0, "rule_value", 0.9),  # of the time before the load
        (1.0, "rule_value", 0.5),
        (2.0, "rule_value", 0.5),
        (61.0, "rule_value", 0.9),  # and after it
    ]
    trial, scaler = made(rule, lines)
    scaler.params.update({"cpus": 0.2, "metric_interval_ns": 1e9})  # type: ignore[attr-defined]
    trial.records[0].params = {"duration_ns": 60e9}
    trial.samples.append([Sample("completed_count", 80.0)])
    assert recorded_runs._request_cpu_ns([(trial, scaler)]) == pytest.approx(5e6)
    other, of_rate = made(ScalingRule(rules.RATE), lines)
    assert recorded_runs._request_cpu_ns([(other, of_rate)]) == 0


def test_a_trace_and_a_run_exclude_each_other() -> None:
    stated = request.Stated(None, None, None, None, ())
    with pytest.raises(UsageError, match="needs a trace or a stored run"):
        request.made(stated, {}, None)
