"""The rate of a lab's link, by a native benchmark and iperf3 side by side: both are held against
what was set, and the cross-check of the run has them as a pair."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path

import pytest
from trials import needs_root

from nephoscope import capabilities, catalog, runs
from nephoscope.crosscheck.result import CrossCheck
from nephoscope.model import RunResult
from nephoscope.plans.files.load import from_text
from nephoscope.store import Store

PLAN = """
name: third-party
seed: 1
warmup: 0
lab:
  version: 1
  name: {name}
  network: 10.83.0.0/24
  hosts: {{a: {{}}, b: {{}}}}
  links: {{wire: {{between: [a, b], {conditions}}}}}
targets: [{{name: a, kind: lab}}, {{name: b, kind: lab}}]
accept: [late_sends]
repeat: {{min: 3, max: 3}}
benchmarks:
"""
TCP = """
  - {benchmark: net.throughput, on: a, peer: b, params: {duration_ns: 3s}}
  - {benchmark: iperf3.tcp, on: a, peer: b, params: {duration_ns: 3s}}
"""
pytestmark = [
    needs_root,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("iperf3") is None, reason="needs iperf3"),
]


def measured(store: Path, conditions: str, benchmarks: str) -> RunResult:
    name = f"t{secrets.token_hex(3)}"
    text = PLAN.format(name=name, conditions=conditions) + benchmarks
    plan = from_text(text, "plan.yaml", {}, catalog.load())
    result = capabilities.build(runs.execute(plan, Store(store)))
    assert not result.invalid
    return result


def value(result: RunResult, benchmark: str, metric: str) -> float:
    (line,) = [one for one in result.metrics if (one.benchmark, one.metric) == (benchmark, metric)]
    return line.estimate.value


def pairs(result: RunResult) -> set[tuple[str, str, str]]:
    check = result.part(CrossCheck)
    assert check is not None
    return {(line.native, line.tool, line.metric) for line in check.lines}


def test_the_rate_of_a_link(tmp_path: Path) -> None:
    result = measured(tmp_path, "rate: 20Mbit/s, delay: 5ms", TCP)
    # A segment of 1448 bytes is a frame of 1514.
    expected = 20e6 / 8 * 1448 / 1514
    for benchmark in ("net.throughput", "iperf3.tcp"):
        goodput = value(result, benchmark, "goodput_bytes_per_s")
        assert goodput == pytest.approx(expected, rel=0.03), benchmark
    assert ("net.throughput", "iperf3.tcp", "goodput_bytes_per_s") in pairs(result)
