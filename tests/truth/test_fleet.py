"""The fleet check of a lab of twenty hosts, of which three have a fault that was planted."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests import hardware
from tests.hardware import Feature
from tests.tools import needs

from nephoscope import command_line
from nephoscope.features.fleet.result import FleetCheck
from nephoscope.results import analyse_run
from nephoscope.store import Store

pytestmark = [pytest.mark.slow, needs("ip", "tc"), hardware.needs(Feature.ROOT, os.geteuid() == 0)]

NAMES = [f"node{at:02d}" for at in range(20)]
THROTTLED, SMALL_MTU, LOSSY = "node03", "node11", "node17"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """Twenty hosts on one switch: a throttled CPU, a port with another MTU, a path with loss."""
    name = f"fleet{uuid.uuid4().hex[:4]}"
    links = {
        f"port{at:02d}": {
            "between": [host, "lan"],
            **({"mtu": 1400} if host == SMALL_MTU else {}),
            **({"loss": "5%"} if host == LOSSY else {}),
        }
        for at, host in enumerate(NAMES)
    }
    topology = {
        "version": 1,
        "name": name,
        "network": "10.93.0.0/24",
        "hosts": {host: {"cpu": {"cap": "30%"}} if host == THROTTLED else {} for host in NAMES},
        "switches": {"lan": {}},
        "links": links,
    }
    file = tmp_path / "racks.yaml"
    file.write_text(yaml.safe_dump(topology))
    assert command_line.main(["lab", "up", str(file)]) == 0
    yield name
    assert command_line.main(["lab", "down", name]) == 0


def test_three_faults_of_twenty_hosts_are_named(lab: str, tmp_path: Path) -> None:
    assert command_line.main(["fleet", "--lab", lab, "--store", str(tmp_path), "--seed", "5"]) == 1
    found = analyse_run.build(Store(tmp_path).open("latest")).part(FleetCheck)
    assert found is not None
    assert {one.target for one in found.odd} == {THROTTLED, SMALL_MTU, LOSSY}, found.odd
    checks = {(one.target, one.check.partition(" of ")[0]) for one in found.odd}
    assert {(THROTTLED, "CPU quota"), (SMALL_MTU, "MTU"), (LOSSY, "packet loss")} <= checks
