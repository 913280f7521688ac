"""The ranking of a lab of three hosts: a copy ties everywhere, a cap costs CPU rows only."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests import hardware
from tests.attempts import Undecided
from tests.hardware import Feature
from tests.tools import needs

from nephoscope import command_line
from nephoscope.store import Store

pytestmark = [pytest.mark.slow, needs("ip", "tc"), hardware.needs(Feature.ROOT, os.geteuid() == 0)]

PLAN = """
name: copies
lab:
  version: 1
  name: {name}
  network: 10.94.0.0/24
  hosts:
    a: {{cpu: {{cpus: [0]}}}}
    copy: {{cpu: {{cpus: [0]}}}}
    capped: {{cpu: {{cpus: [0], cap: 80%, cap_period: 10ms}}}}
    server: {{cpu: {{cpus: [1]}}}}
  switches: {{lan: {{}}}}
  links:
    port-a: {{between: [a, lan]}}
    port-copy: {{between: [copy, lan]}}
    port-capped: {{between: [capped, lan]}}
    port-server: {{between: [server, lan], delay: 5ms}}
targets:
  - {{name: a, kind: lab, roles: [ranked]}}
  - {{name: copy, kind: lab, roles: [ranked]}}
  - {{name: capped, kind: lab, roles: [ranked]}}
  - {{name: server, kind: lab}}
benchmarks:
  - {{benchmark: cpu.hash, on: ranked, params: {{threads: 1, duration_ns: 400ms}}}}
  - {{benchmark: net.rtt, on: ranked, peer: server, params: {{duration_ns: 500ms}}}}
repeat: {{min: 8, max: 8}}
"""


def test_a_cap_of_80_percent_ranks_last_on_the_cpu_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN.format(name=f"rank{os.getpid() % 10_000}"))
    assert command_line.main(["run", str(plan), "--store", str(tmp_path / "store")]) == 0
    capsys.readouterr()
    throttled = [
        float(record.counters.get("throttled_ratio") or 0)
        for record in Store(tmp_path / "store").open("latest").records()
        if (record.benchmark, record.key.target) == ("cpu.hash", "capped")
    ]
    if min(throttled) < 0.1:
        raise Undecided("Other programs took the CPU, so that the cap of 80 % never held.")
    assert command_line.main(["rank", "latest", "--store", str(tmp_path / "store"), "--json"]) == 0
    rows = {
        row["benchmark"]: {
            cell["alternative"]: (cell["rank_low"], cell["rank_high"]) for cell in row["cells"]
        }
        for row in json.loads(capsys.readouterr().out)["rows"]
    }
    assert rows["cpu.hash"] == {"a": (1, 2), "copy": (1, 2), "capped": (3, 3)}
    assert rows["net.rtt"] == dict.fromkeys(("a", "copy", "capped"), (1, 3))
