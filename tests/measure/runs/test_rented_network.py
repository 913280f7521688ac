"""Rented machines in several regions and clouds: what is let in, and what their traffic costs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from tests.contract.toy_cloud import ToyCloud

from nephoscope.core.errors import PlanError, UsageError
from nephoscope.measure.cloud.model import (
    CloudResource,
    Kind,
    Machine,
    MachinePrices,
    MachineRequest,
    MachineType,
    PlacementGroupRequest,
    Request,
)
from nephoscope.measure.cloud.provider import CloudTraits
from nephoscope.measure.plans import Plan
from nephoscope.measure.runs import rented_environment
from nephoscope.measure.runs.rented_environment import RentedEnvironment, price_of
from nephoscope.measure.runs.rented_network import FRAMES, RentedNetworks

RENTED = {"kind": "rented", "provider": "toy", "type": "small", "image": "plain"}
RTT = {"rate_per_s": 200, "duration_ns": 500_000_000}


class WalledCloud(ToyCloud):
    """A toy with firewalls, public addresses and placement groups; it remembers what it was
    asked to let in."""

    traits: ClassVar[CloudTraits] = replace(
        ToyCloud.traits,
        kinds=ToyCloud.traits.kinds | {Kind.SECURITY_GROUP, Kind.PLACEMENT_GROUP},
        placements=("cluster", "spread"),
    )

    def __init__(
        self, folder: Path, *, egress: float | None = 0.09, zones: float | None = 0.02
    ) -> None:
        super().__init__(folder)
        self.egress, self.between_zones = egress, zones
        self.admitted: list[tuple[str, list[str]]] = []
        self.requests: list[Request] = []
        self.placements: tuple[Any, ...] | None = ("spread",)
        self.net = 1

    def types(self, region: str) -> Sequence[MachineType]:
        return [replace(one, placements=self.placements) for one in super().types(region)]

    def prices(self, request: MachineRequest) -> MachinePrices | None:
        return MachinePrices(1.0, egress_gib=self.egress, zones_gib=self.between_zones)

    def create(self, request: Request) -> Sequence[CloudResource]:
        self.requests.append(request)
        return super().create(request)

    def resources(self, region: str, run: str | None = None, kinds: Any = None) -> Any:
        return [self._addressed(one) for one in super().resources(region, run, kinds)]

    def _addressed(self, one: CloudResource) -> CloudResource:
        if not isinstance(one, Machine):
            return one
        return replace(one, address=f"192.0.{self.net}.{1 if one.region == 'east' else 2}")

    def admit(self, group: CloudResource, sources: Collection[str]) -> None:
        assert group.kind is Kind.SECURITY_GROUP
        self.admitted.append((group.region, list(sources)))


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., WalledCloud]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "cloud").mkdir()

    def make(**given: Any) -> WalledCloud:
        cloud = WalledCloud(tmp_path / "cloud", **given)
        monkeypatch.setattr(rented_environment, "open_provider", lambda settings: cloud)
        return cloud

    return make


def plan(*benchmarks: dict[str, Any], **target: Any) -> Plan:
    targets = [
        {**RENTED, "name": "vm", "region": ["east", "west"], "login_from": "192.0.2.7/32", **target}
    ]
    return Plan.model_validate(
        {
            "name": "places",
            "repeat": {"min": 5, "max": 5},
            "warmup": 1,
            "targets": targets,
            "benchmarks": list(benchmarks),
            "budget": 600,
            "money": {"limit": 50},
        }
    )


def between(benchmark: str, **params: Any) -> dict[str, Any]:
    return {"benchmark": benchmark, "on": ["vm-west"], "peer": "vm-east", "params": params}


def test_pairs_of_two_networks_are_those_of_two_regions_clouds_or_rentals() -> None:
    wanted = plan(between("net.rtt", **RTT), {"benchmark": "null"})
    assert RentedNetworks.of(wanted).across == {("vm-west", "vm-east")}
    near = plan(
        {"benchmark": "net.rtt", "on": ["vm-2"], "peer": "vm-1", "params": RTT},
        region="east", count=2,
    )  # fmt: skip
    assert RentedNetworks.of(near).across == frozenset()
    assert RentedNetworks.of(near, are_apart=True).across == {("vm-2", "vm-1")}


@pytest.mark.parametrize(
    ("direction", "west", "east"), [("up", 1, 0), ("down", 0, 1), ("both", 1, 1)]
)
def test_bytes_that_leave_are_counted_at_their_sender(direction: str, west: int, east: int) -> None:
    wanted = plan(between("net.throughput", transfer_bytes=1_000_000, direction=direction))
    networks = RentedNetworks.of(wanted)
    sent = networks.bytes_out(wanted, networks.across)
    # Five rounds and one of warm-up.
    assert sent["vm-west"] == pytest.approx(6 * FRAMES * 1e6 * west)
    assert sent["vm-east"] == pytest.approx(6 * FRAMES * 1e6 * east)


def test_the_price_of_traffic_is_part_of_the_price(made: Callable[..., WalledCloud]) -> None:
    made(egress=0.5)
    wanted = plan(between("net.throughput", transfer_bytes=2**30), between("net.rtt", **RTT))
    price = asyncio.run(price_of(wanted))
    probes = 200 * 0.5 * (64 + 100)
    assert price.traffic.sent_bytes == pytest.approx(6 * FRAMES * (2**30 + 2 * probes))
    assert price.traffic.cost == pytest.approx(0.5 * price.traffic.sent_bytes / 2**30)
    assert price.quote is not None
    assert price.quote.cost(1) == pytest.approx(2.0 + price.traffic.cost)
    free = asyncio.run(price_of(plan(between("net.throughput"), per_gib_out=0)))
    assert free.traffic.cost == 0


def test_traffic_between_zones_has_a_price_of_its_own(made: Callable[..., WalledCloud]) -> None:
    made(egress=0.5, zones=0.02)

    def near(*benchmarks: dict[str, Any], **more: Any) -> Plan:
        return plan(*benchmarks, region="east", **more)

    flow = {"benchmark": "net.throughput", "on": ["vm-east-b"], "peer": "vm-east-a"}
    bounded = {**flow, "params": {"transfer_bytes": 2**30}}
    priced = asyncio.run(price_of(near(bounded, zone=["east-a", "east-b"])))
    assert priced.traffic.sent_bytes == pytest.approx(6 * FRAMES * 2**30)
    assert priced.traffic.cost == pytest.approx(6 * FRAMES * 0.02)
    free = asyncio.run(price_of(near(flow, zone=["east-a", "east-b"], per_gib_zones=0)))
    assert free.traffic.cost == 0
    with pytest.raises(PlanError, match="Nothing bounds the bytes of net") as caught:
        asyncio.run(price_of(near(flow, zone=["east-a", "east-b"])))
    assert "per_gib_zones" in caught.value.hint
    made(zones=None)
    with pytest.raises(UsageError, match="The price of traffic between zones of east of toy"):
        asyncio.run(price_of(near(bounded, zone=["east-a", "east-b"])))
    # One zone, and zones that nobody names, have no such traffic.
    within = {**flow, "on": ["vm-2"], "peer": "vm-1"}
    for zone in ("east-a", "any"):
        assert asyncio.run(price_of(near(within, zone=zone, count=2))).traffic.cost == 0


@pytest.mark.parametrize(
    ("egress", "benchmark", "sentence"),
    [
        (0.09, between("net.throughput"), "Nothing bounds the bytes of net.throughput between"),
        (0.09, between("net.rtt", rate_per_s=0), "Nothing bounds the bytes of net.rtt between"),
        (None, between("net.rtt", **RTT), "The price of traffic that leaves (east|west) of toy"),
    ],
)
def test_a_bill_that_nobody_can_foresee_is_refused(
    made: Callable[..., WalledCloud],
    egress: float | None,
    benchmark: dict[str, Any],
    sentence: str,
) -> None:
    cloud = made(egress=egress)
    with pytest.raises((UsageError, PlanError), match=sentence) as caught:
        asyncio.run(price_of(plan(benchmark)))
    assert "per_gib_out" in caught.value.hint
    assert cloud.all() == []


def test_each_firewall_lets_in_exactly_the_others_and_an_address_that_is_new(
    made: Callable[..., WalledCloud], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = made()
    wanted = plan(between("net.rtt", **RTT))
    run: Any = SimpleNamespace(
        id="places-1", manifest=SimpleNamespace(seed=1), update=lambda **values: None
    )

    async def whole() -> None:
        rented = RentedEnvironment(wanted, run, lambda line: None)
        await rented.up()
        try:
            assert sorted(cloud.admitted) == [("east", ["192.0.1.2"]), ("west", ["192.0.1.1"])]
            monkeypatch.setattr(rented_environment, "EVENTS_S", -1.0)
            await rented.apply({})
            assert len(cloud.admitted) == 2
            # A machine that was stopped and started came back at another address.
            cloud.net = 3
            await rented.apply({})
            assert sorted(cloud.admitted[2:]) == [
                ("east", ["192.0.3.2"]),
                ("west", ["192.0.3.1"]),
            ]
        finally:
            await rented.down()

    asyncio.run(whole())
    assert cloud.all() == []


def test_nothing_is_let_in_where_no_pair_meets(
    made: Callable[..., WalledCloud], tmp_path: Path
) -> None:
    cloud = made()
    wanted = plan({"benchmark": "null"})
    run: Any = SimpleNamespace(
        id="places-2", manifest=SimpleNamespace(seed=1), update=lambda **values: None
    )

    async def whole() -> None:
        rented = RentedEnvironment(wanted, run, lambda line: None)
        await rented.up()
        await rented.down()

    asyncio.run(whole())
    assert cloud.admitted == []


def test_machines_that_ask_for_a_placement_group_lie_in_one_of_their_zone(
    made: Callable[..., WalledCloud],
) -> None:
    cloud = made()
    wanted = plan({"benchmark": "null"}, region="east", placement=["none", "spread"], count=2)
    assert [target.name for target in wanted.targets] == [
        "vm-none-1", "vm-none-2", "vm-spread-1", "vm-spread-2",
    ]  # fmt: skip
    run: Any = SimpleNamespace(
        id="places-3", manifest=SimpleNamespace(seed=1), update=lambda **values: None
    )

    async def whole() -> None:
        rented = RentedEnvironment(wanted, run, lambda line: None)
        await rented.up()
        await rented.down()

    asyncio.run(whole())
    (group,) = [one for one in cloud.requests if isinstance(one, PlacementGroupRequest)]
    assert (group.region, group.placement) == ("east", "spread")
    machines = [one for one in cloud.requests if isinstance(one, MachineRequest)]
    used = {one.name.partition("vm-")[2]: one.placement_group for one in machines}
    assert used["none-1"] == used["none-2"] == ""
    assert used["spread-1"] == used["spread-2"] != ""
    assert cloud.all() == []


@pytest.mark.parametrize(
    ("placement", "sentence"),
    [
        ("partition", "toy has no placement group of kind partition"),
        ("cluster", "small cannot be in a cluster placement group"),
    ],
)
def test_a_placement_that_cannot_be_is_one_sentence(
    made: Callable[..., WalledCloud], placement: str, sentence: str
) -> None:
    cloud = made()
    with pytest.raises(UsageError, match=sentence):
        asyncio.run(price_of(plan({"benchmark": "null"}, placement=placement)))
    assert cloud.all() == []
