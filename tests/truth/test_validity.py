"""Two hosts of a lab, one with a twentieth of a CPU: the one with the cap is the slower one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import hardware
from tests.attempts import Undecided
from tests.hardware import Feature
from tests.tools import needs

from nephoscope import command_line
from nephoscope.core.model import TrialStatus
from nephoscope.store import Store

pytestmark = [
    pytest.mark.slow,
    pytest.mark.alone,
    needs("ip", "tc"),
    hardware.needs(Feature.ROOT, os.geteuid() == 0),
]

LAB = """
version: 1
name: {name}
network: 10.95.0.0/24
hosts:
  a: {{cpu: {{cpus: [0]}}}}
  b: {{cpu: {{cpus: [0], cap: 5%, cap_period: 20ms}}}}
"""

# The lab is no part of the plan, and the targets have names of their own.
PLAN = """
name: two-vms
targets:
  - {{name: old-vm, kind: lab, lab: {name}, host: a}}
  - {{name: new-vm, kind: lab, lab: {name}, host: b}}
benchmarks: [{{benchmark: cpu.hash, params: {{threads: 1, duration_ns: 300ms}}}}]
repeat: {{min: 10, max: 10}}
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    name = f"val{os.getpid() % 10_000}"
    topology = tmp_path / "lab.yaml"
    topology.write_text(LAB.format(name=name))
    assert command_line.main(["lab", "up", str(topology)]) == 0
    yield name
    assert command_line.main(["lab", "down", name]) == 0


def test_the_host_with_a_cap_is_slower_and_loses_no_trial(
    lab: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, store = tmp_path / "plan.yaml", str(tmp_path / "store")
    plan.write_text(PLAN.format(name=lab))
    assert command_line.main(["run", str(plan), "--store", store]) == 0
    records = Store(Path(store)).open("latest").records()
    assert {record.status for record in records} == {TrialStatus.VALID}
    ratios = [
        float(record.counters.get("throttled_ratio") or 0)
        for record in records
        if record.key.target == "new-vm"
    ]
    if min(ratios) <= 0:
        raise Undecided("Other programs took the CPU, so that the cap of 5 % never held.")
    capsys.readouterr()
    words = ["compare", "latest:old-vm", "latest:new-vm", "--metric", "hash_bytes_per_s"]
    assert command_line.main([*words, "--store", store, "--json"]) == 0
    (line,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert line["comparison"]["verdict"]["word"] == "worse"
