"""Runs on rented machines: rented before the first trial, gone after the last one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.contract.toy_cloud import ToyCloud

from nephoscope import catalog
from nephoscope.core.errors import PlanError, UsageError
from nephoscope.measure.cloud.model import Kind
from nephoscope.measure.cloud.provider import CloudSettings
from nephoscope.measure.plans import Plan, expand
from nephoscope.measure.runs import rented_environment, runner
from nephoscope.measure.runs.rented_environment import (
    RentedEnvironment,
    price_of,
)
from nephoscope.measure.runs.rented_specs import rental_name, rental_specs
from nephoscope.measure.runs.schedule import cells
from nephoscope.store import Store, query

RENTED = {"kind": "rented", "provider": "toy", "region": "east", "type": "small", "image": "plain"}
BUDGET = {"budget": 600, "money": {"limit": 5}}


def plan(*targets: Mapping[str, Any], **more: Any) -> Plan:
    return Plan.model_validate(
        {
            "name": "rents",
            "repeat": {"min": 2, "max": 2},
            "warmup": 0,
            "targets": [{**RENTED, **target} for target in targets],
            "benchmarks": [{"benchmark": "null"}],
            **BUDGET,
            **more,
        }
    )


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToyCloud:
    """Every provider of a plan is this cloud; `dear` is one of the same price in another place."""
    (tmp_path / "cloud").mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    toy = ToyCloud(tmp_path / "cloud")

    def opened(settings: CloudSettings) -> ToyCloud:
        return toy

    monkeypatch.setattr(rented_environment, "open_provider", opened)
    return toy


def test_a_list_makes_a_target_of_each_value_and_a_count_several() -> None:
    wanted = plan({"name": "vm", "type": ["small", "large"], "market": ["on demand", "spot"]})
    assert [target.name for target in wanted.targets] == [
        "vm-small-on-demand",
        "vm-small-spot",
        "vm-large-on-demand",
        "vm-large-spot",
    ]
    counted = plan({"name": "vm", "count": 3}, {"name": "b"})
    assert [target.name for target in counted.targets] == ["vm-1", "vm-2", "vm-3", "b"]
    again = Plan.model_validate(counted.model_dump(mode="json"))
    assert again == counted


def test_machines_are_rented_in_a_random_order_drawn_by_the_seed() -> None:
    wanted = plan({"name": "vm", "type": ["small", "large"], "count": 4})

    def order(seed: int) -> list[str]:
        ((_, spec),) = rental_specs(wanted, "run", seed)
        return [group.name for group in spec.groups]

    assert sorted(order(1)) == sorted(target.name for target in wanted.targets)
    assert order(1) == order(1) != order(2)


def test_a_rental_is_named_after_its_run() -> None:
    assert rental_name("20261127-081752-two_types-2ae6", 0) == "20261127-081752-two-types-2ae6-1"
    assert len(rental_name("x" * 200, 11)) <= 63


def test_a_run_measures_what_it_rents_and_leaves_nothing(
    cloud: ToyCloud, probe: Path, tmp_path: Path
) -> None:
    wanted = plan({"name": "vm", "region": ["east", "west"]})
    run = runner.execute(wanted, Store(tmp_path / "store"))
    assert {record.key.target for record in run.records()} == {"vm-east", "vm-west"}
    assert cloud.all() == []
    assert cloud.calls.count("create") == 4  # a key pair in each region, two machines
    assert list((tmp_path / "state" / "nephoscope" / "rentals").iterdir()) == []


def test_clouds_are_priced_together(cloud: ToyCloud, tmp_path: Path) -> None:
    one = {"name": "a", "count": 8}
    other = {"name": "b", "count": 8, "profile": "second"}
    # 8 machines at 1 USD an hour for 30 minutes are 4 USD; 16 are above the limit.
    asyncio.run(price_of(plan(one)))
    price = asyncio.run(price_of(plan(one, other)))
    quote, hours = price.quote, price.hours
    assert quote is not None
    assert quote.cost(hours) == pytest.approx(16 * 1800 / 3600)
    with pytest.raises(UsageError, match=r"costs up to 8\.00 USD"):
        runner.execute(plan(one, other), Store(tmp_path / "store"))
    assert cloud.all() == []


@pytest.mark.parametrize(
    ("more", "part"),
    [
        ({"money": None}, "no spending limit is set"),
        ({"budget": None}, "the run has no time limit"),
        ({"money": {"limit": 5, "currency": "EUR"}}, "in EUR, the price in USD"),
        ({"money": {"limit": 5, "machine_hours": 0.1}}, "0.5 machine-hours"),
        ({"lab": {"name": "l", "hosts": {"v": {}}}}, "a lab and rented machines"),
    ],
)
def test_what_must_not_be_rented_is_one_sentence(
    cloud: ToyCloud, tmp_path: Path, more: dict[str, Any], part: str
) -> None:
    with pytest.raises(UsageError) as caught:
        runner.execute(plan({"name": "vm"}, **more), Store(tmp_path / "store"))
    assert part in str(caught.value)
    assert cloud.all() == []


def test_a_price_of_the_users_own_stands_before_the_list(cloud: ToyCloud) -> None:
    price = asyncio.run(price_of(plan({"name": "vm", "per_hour": 0.25, "count": 2})))
    quote, hours = price.quote, price.hours
    assert quote is not None
    assert quote.per_h == pytest.approx(0.5)
    assert hours == pytest.approx(1800 / 3600)


def test_what_happens_to_a_machine_is_told(cloud: ToyCloud, probe: Path) -> None:
    said: list[str] = []
    wanted = plan({"name": "vm"})
    run = SimpleNamespace(id="run1", manifest=SimpleNamespace(seed=1), update=lambda **_: None)

    async def work() -> None:
        environment = RentedEnvironment(wanted, cast(Any, run), said.append)
        await environment.up()
        (machine,) = cloud.all(Kind.MACHINE)
        cloud._write(machine, state="stopped")
        await environment.down()

    asyncio.run(work())
    assert "vm is stopped." in said
    assert cloud.all() == []


def launches(target: Mapping[str, Any], level: str, number: int) -> Plan:
    boot = {"benchmark": "host.boot", "params": {"level": level}}
    return plan(target, benchmarks=[boot], repeat={"min": number, "max": number})


@pytest.mark.parametrize(("level", "number", "rented"), [("launch", 1, 1), ("instance", 2, 3)])
def test_a_launch_is_recorded_and_an_instance_is_recreated(
    cloud: ToyCloud, probe: Path, tmp_path: Path, level: str, number: int, rented: int
) -> None:
    run = runner.execute(launches({"name": "vm"}, level, number), Store(tmp_path / "store"))
    booted: dict[int, dict[str, float]] = {}
    for row in query.trial_medians(run, lambda benchmark, _: benchmark == "host.boot"):
        booted.setdefault(row.round, {})[row.metric] = row.value
    assert len(booted) == number
    for values in booted.values():
        # All since the call; this machine's kernel is older than that.
        assert set(values) == {"boot_reachable_ns", "boot_answer_ns", "boot_running_ns"}
        assert 0 < values["boot_answer_ns"] <= values["boot_running_ns"]
        assert values["boot_running_ns"] <= values["boot_reachable_ns"]
    assert run.manifest.rented["vm"]["image"] == "image-1"
    assert cloud.calls.count("create") == 2 * rented  # each time with a key pair
    assert cloud.all() == []


def test_a_machine_is_launched_once_and_nothing_else_has_a_launch(
    cloud: ToyCloud, probe: Path, tmp_path: Path
) -> None:
    with pytest.raises(PlanError, match="'vm' is launched once in a run"):
        runner.execute(launches({"name": "vm"}, "launch", 2), Store(tmp_path / "store"))
    assert cloud.all() == []
    values = launches({"name": "vm"}, "launch", 1).model_dump(mode="json")
    values |= {"targets": [{"name": "v", "kind": "lab"}], "lab": {"name": "l", "hosts": {"v": {}}}}
    lab = Plan.model_validate({**values, "money": None})
    with pytest.raises(PlanError, match="'v' is not rented, so that it has no launch"):
        cells.check(lab, expand(lab, catalog.load()))
