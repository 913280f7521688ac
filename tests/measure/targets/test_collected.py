"""Neighbours that a collector measures: real servers on loopback, and what a plan may say."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sshd import Server, needs_it, serving

from nephoscope import catalog
from nephoscope.cli.kit import options
from nephoscope.core.errors import PlanError, TargetError
from nephoscope.measure import plans, runs
from nephoscope.measure.plans.files.load import from_values
from nephoscope.measure.targets.kinds.ssh import SshRecord
from nephoscope.store import Store

HUB = {"name": "hub", "kind": "ssh", "address": "hub"}
NEIGHBOUR = {"name": "near", "kind": "ssh", "address": "10.0.0.2", "via": "hub"}


def plan_of(*targets: dict[str, Any], **more: Any) -> plans.Plan:
    values = {
        "name": "p",
        "seed": 1,
        "warmup": 0,
        "repeat": {"min": 2, "max": 2},
        "targets": list(targets),
        "benchmarks": [{"benchmark": "null"}],
        **more,
    }
    return from_values(values, catalog.load(), lambda _: "")


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    # A short path, because the collector's connection has its socket in the folder.
    with (
        tempfile.TemporaryDirectory(dir="/tmp") as folder,
        serving(Path(folder) / "h") as hub,
        serving(Path(folder) / "n") as neighbour,
    ):
        yield hub, neighbour


@needs_it
def test_a_collector_measures_its_neighbours(
    servers: tuple[Server, Server], tmp_path: Path, probe: Path
) -> None:
    hub, neighbour = servers
    wrong = neighbour.record(name="b", via="hub", port=1)
    records = [hub.record(name="hub"), neighbour.record(name="a", via="hub"), wrong]
    plan = plan_of(
        *({**record.model_dump(exclude_defaults=True), "kind": "ssh"} for record in records)
    )
    run = runs.execute(plan, Store(tmp_path / "store"), absent={})
    valid = {record.key.target for record in run.records() if record.status.value == "valid"}
    assert valid == {"hub", "a"}
    assert run.manifest.fingerprints["a"]["reached"]["via"] == "hub"
    assert list(run.manifest.lost) == ["b"], "its collector cannot log in to it"
    assert "its collector hub cannot log in to it" in run.manifest.lost["b"]
    # The neighbour's server was logged in to, and once for all of its programs.
    assert neighbour.log().count("Accepted publickey") == 1


@needs_it
def test_a_neighbour_whose_connection_is_lost_is_no_dead_probe(
    servers: tuple[Server, Server], probe: Path
) -> None:
    hub, neighbour = servers

    async def lose() -> None:
        collector = hub.record(name="hub").make()
        await collector.open()
        target = neighbour.record(name="a", via="hub").make_through(collector)
        try:
            await target.open()
            running = await target.start("null", {"wait_ns": 60_000_000_000}, 60)
            await running.ready(20)
            await running.go()
            neighbour.kill_connections()
            with pytest.raises(TargetError, match="a: the connection was lost"):
                await running.result(60)
        finally:
            await target.close()
            await collector.close()

    asyncio.run(lose())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"via": "huh"}, "there is no target 'huh'"),
        ({"via": "near"}, "'near' cannot collect for 'near'"),
        ({"via": "other"}, "'other' cannot collect for 'near'"),
        ({"via": "here"}, "'here' cannot collect for 'near'"),
    ],
)
def test_a_collector_is_another_ssh_target_of_the_plan(
    changes: dict[str, str], message: str
) -> None:
    other = {**NEIGHBOUR, "name": "other"}
    with pytest.raises(PlanError, match=message):
        plan_of(HUB, {**NEIGHBOUR, **changes}, other, {"name": "here"})


def test_a_bound_of_concurrency_needs_concurrency() -> None:
    with pytest.raises(PlanError, match="so that `max_concurrent` has no effect"):
        plan_of(HUB, max_concurrent=8)
    assert plan_of(HUB, max_concurrent=8, concurrent=True).most_at_once == 8


def test_a_neighbour_is_no_side_of_a_benchmark_with_two() -> None:
    sides = [{"benchmark": "net.rtt", "on": ["hub"], "peer": "near"}]
    with pytest.raises(PlanError, match="'near' serves nobody"):
        plan_of(HUB, NEIGHBOUR, benchmarks=sides)


def test_a_trial_on_the_collector_waits_for_its_neighbours() -> None:
    from nephoscope.measure.runs.environment import Environment
    from nephoscope.measure.runs.trials.target_pool import TargetPool

    class Ignoring:
        def add(self, *_: Any) -> None: ...

        def store(self) -> None: ...

    plan = plan_of(HUB, NEIGHBOUR, {**NEIGHBOUR, "name": "far", "address": "10.0.0.3"})
    pool = TargetPool(plan, SshRecord.make, Environment(), Ignoring())  # type: ignore[arg-type]
    needs = {name: pool.machines([name]) for name in ("hub", "near", "far")}
    assert needs["near"].isdisjoint(needs["far"]), "neighbours do not wait for one another"
    assert needs["hub"] > needs["near"] | needs["far"]


def test_a_range_in_an_address_names_a_target_for_each_number() -> None:
    plan = plan_of({"name": "web", "kind": "ssh", "address": "node[08-11].example", "user": "me"})
    assert [(target.name, target.address, target.user) for target in plan.targets] == [  # type: ignore[attr-defined]
        (f"web-{number}", f"node{number}.example", "me") for number in ("08", "09", "10", "11")
    ]
    assert plan_of(*(target.model_dump() for target in plan.targets)).targets == plan.targets
    names = [target.name for target in options.targets(["ssh:me@node[1-3]:22"])]
    assert names == ["node-1", "node-2", "node-3"]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("node[5-4]", "ends before it begins"),
        ("node[1-1001]", "are more than 1000 targets"),
        ("node[1-999999999]", "are more than 1000 targets"),
    ],
)
def test_a_range_is_bounded(address: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        plan_of({"name": "web", "kind": "ssh", "address": address})
