"""Lab hosts as targets: what is told when there is none, and who reaches whom.

What a host does once it is open is in tests/contract, over every platform.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nephoscope.core.errors import TargetError, UsageError
from nephoscope.measure.lab import files
from nephoscope.measure.lab.handle import GuestAccess, Host, Lab, Nic
from nephoscope.measure.lab.provisioner import LABS
from nephoscope.measure.targets.base import Endpoint
from nephoscope.measure.targets.kinds.lab import LabRecord
from nephoscope.measure.targets.lab import route_into
from nephoscope.measure.targets.local import LocalTarget
from nephoscope.measure.targets.probe.target import Target

TOPOLOGY = files.from_values({"version": 1, "name": "office", "hosts": {"a": {}, "b": {}}})


def host(name: str, *addresses: str) -> Host:
    nics = tuple(
        Nic("eth0", "lan", address, 24, "02:00:00:00:00:01", 1500) for address in addresses
    )
    here = Path("/nonexistent")
    spec = TOPOLOGY.hosts["a"]
    return Host("office", name, spec, here, (), here, nics, (), {}, entry=("enter", "--"))


@pytest.fixture
def _office(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = {
        "a": host("a", "10.0.1.1", "10.0.2.1"),
        "b": host("b", "10.0.2.2"),
    }
    lab = Lab("office", TOPOLOGY, Path("/nonexistent"), hosts)
    monkeypatch.setattr(LABS, "open", lambda name: lab)


def inside(name: str, lab: str = "office") -> Target:
    return LabRecord(name=name, lab=lab).make()


def test_a_lab_that_is_down_is_told() -> None:
    with pytest.raises(UsageError, match="No lab named no-such-lab is up") as caught:
        asyncio.run(inside("a", "no-such-lab").open())
    assert "nephoscope lab up" in caught.value.hint


@pytest.mark.usefixtures("_office")
def test_a_host_that_the_lab_has_not_is_told_with_those_it_has() -> None:
    with pytest.raises(UsageError, match="lab office has no host 'c'") as caught:
        asyncio.run(inside("c").open())
    assert "a, b" in caught.value.hint


def test_a_target_without_a_lab_is_told() -> None:
    with pytest.raises(UsageError, match="names no lab"):
        LabRecord(name="a").make()


@pytest.mark.usefixtures("_office")
def test_hosts_of_one_lab_reach_each_other_on_the_network_they_share() -> None:
    assert inside("a").endpoint(inside("b")) == Endpoint("10.0.2.1", "10.0.2.1")
    assert inside("b").endpoint(inside("a")) == Endpoint("10.0.2.2", "10.0.2.2")
    for stranger in (LocalTarget(), inside("a", "other")):
        with pytest.raises(TargetError, match="has no way to it that is known"):
            inside("a").endpoint(stranger)
    with pytest.raises(TargetError, match="has no way to it"):
        LocalTarget().endpoint(inside("a"))


def test_a_guest_is_reached_with_the_keys_of_the_lab_alone() -> None:
    guest = GuestAccess("169.254.77.2", 22, "root", Path("/n"), Path("/key"), Path("/known"))
    way = route_into(guest)
    assert (way.to.host, way.to.port, way.to.user) == ("169.254.77.2", 22, "root")
    assert (way.identity, way.known_hosts, way.config) == ("/key", "/known", False)
    assert way.connect is not None
    with pytest.raises(OSError, match="/n"):
        asyncio.run(way.connect())
