"""Trials whose targets serve a client elsewhere, or each its own; whose counters they keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nephoscope.core.model import TrialStatus
from nephoscope.features.clients.result import ClientsAndServers
from nephoscope.measure import plans, runs
from nephoscope.measure.targets import TargetTrial
from nephoscope.report import report_files
from nephoscope.results import analyse_run
from nephoscope.store import Store

from .factory import FakeRunning, Fakes, FakeTarget, good

SSH = [{"name": name, "kind": "ssh", "address": name} for name in ("vm1", "vm2", "gen")]


class ServingTarget(FakeTarget):
    """A target whose servers bring back counters of their machine."""

    async def start(self, *words: Any, **options: Any) -> FakeRunning:
        running = await super().start(*words, **options)
        if options.get("serve") is not None:
            counters: Mapping[str, Any] = {"busy_ratio": 0.75, **SERVER_COUNTERS.get(self.name, {})}
            counted = running._counted

            async def with_counters() -> TargetTrial:
                trial = await counted()
                assert trial.done is not None
                return replace(trial, done=replace(trial.done, counters=counters))

            running._counted = with_counters  # type: ignore[method-assign]
        return running


SERVER_COUNTERS: dict[str, Mapping[str, Any]] = {}


def plan_of(entry: dict[str, Any], **more: Any) -> plans.Plan:
    values = {
        "name": "p",
        "seed": 4,
        "warmup": 0,
        "targets": SSH,
        "repeat": {"min": 6, "max": 6},
        "benchmarks": [{"benchmark": "null", **entry}],
        **more,
    }
    return plans.Plan.model_validate(values)


def execute(path: Path, fakes: Fakes, plan: plans.Plan) -> Any:
    return runs.execute(plan, Store(path), targets=lambda record: ServingTarget(record, fakes))


CLIENT = {"client": "gen", "on": ["vm1", "vm2"]}


def test_a_client_measures_each_server_and_the_server_is_what_the_trial_is_of(
    tmp_path: Path,
) -> None:
    fakes = Fakes()
    run = execute(tmp_path, fakes, plan_of(CLIENT))
    verbs = ("ready", "go", "peer", "run", "stop")
    log = [(who, what.split()[0]) for who, what in fakes.log if what.split()[0] in verbs]
    first = run.records()[0].key.target
    assert log[:6] == [
        (first, "ready"),
        ("gen", "peer"),
        ("gen", "ready"),
        ("gen", "go"),
        ("gen", "run"),
        (first, "stop"),
    ]
    assert {record.key.target for record in run.records()} == {"vm1", "vm2"}
    in_order = sorted(run.records(), key=lambda record: record.position)
    rounds = [tuple(r.key.target for r in in_order if r.key.round == n) for n in range(1, 7)]
    assert [set(one) for one in rounds] == [{"vm1", "vm2"}] * 6, "interleaved within rounds"
    assert len(set(rounds)) == 2, "in random order"
    result = analyse_run.build(run)
    assert {(line.target, *line.factors) for line in result.metrics} == {("vm1",), ("vm2",)}


def test_the_counters_are_those_of_the_target_and_the_clients_stand_beside_them(
    tmp_path: Path,
) -> None:
    fakes = Fakes(lambda *_: good(busy_ratio=0.25, own_busy_cpus=0.98, psi_cpu_some_ratio=0.5))
    run = execute(tmp_path, fakes, plan_of(CLIENT))
    for record in run.records():
        assert record.counters["busy_ratio"] == 0.75
        assert record.counters["client_own_busy_cpus"] == 0.98
        assert "psi_cpu_some_ratio" not in record.counters
    own = execute(tmp_path, fakes, plan_of({"peer": "self", "on": ["vm1", "vm2"]}))
    assert {record.counters["busy_ratio"] for record in own.records()} == {0.25}


def test_a_throttled_server_and_a_throttled_client_are_told_apart(tmp_path: Path) -> None:
    SERVER_COUNTERS["vm2"] = {"throttled_ratio": 0.5}
    try:
        run = execute(tmp_path, Fakes(), plan_of(CLIENT))
        accepting = execute(tmp_path, Fakes(), plan_of(CLIENT, accept=["throttled"]))
    finally:
        SERVER_COUNTERS.clear()
    status = {record.key.target: record.status for record in run.records()}
    assert status == {"vm1": TrialStatus.VALID, "vm2": TrialStatus.INVALID}
    reasons = {record.reasons for record in run.records() if record.key.target == "vm2"}
    assert [text[:13] for (text,) in reasons] == ["the CPU quota"]
    assert {record.status for record in accepting.records()} == {TrialStatus.VALID}


def test_a_throttled_client_invalidates_and_is_named(tmp_path: Path) -> None:
    fakes = Fakes(lambda name, params, number: good(throttled_ratio=0.5 if number > 1 else 0.0))
    run = execute(tmp_path, fakes, plan_of(CLIENT))
    invalid = [record for record in run.records() if record.status is TrialStatus.INVALID]
    assert invalid
    assert all(record.reasons[0].startswith("the client gen: the CPU quota") for record in invalid)


def test_where_both_ends_ran_is_stated(tmp_path: Path) -> None:
    fakes = Fakes(lambda *_: good(own_busy_cpus=0.4))
    result = analyse_run.build(execute(tmp_path, fakes, plan_of({"peer": "self"})))
    ends = result.part(ClientsAndServers)
    assert ends is not None
    assert [(line.target, line.client, line.server) for line in ends.lines] == [
        (name, name, name) for name in ("vm1", "vm2", "gen")
    ]
    assert {line.client_cpus for line in ends.lines} == {0.4}
    told = [one.sentence for one in result.findings if one.id == "client_beside_server"]
    assert len(told) == 3
    assert told[0].endswith("the figures are of the machine as a whole.")
    text = report_files.terminal(result, colour=False, width=200)
    assert "Client and server shared the CPUs of each of vm1, vm2 and gen" in text
