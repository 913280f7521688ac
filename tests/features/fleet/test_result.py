"""The fleet check of a stored run whose samples are set: three faults, three sentences."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.results.made import make_run
from tests.store.factory import filled

from nephoscope import command_line
from nephoscope.core.model import Sample, Setting
from nephoscope.features.fleet.result import SETTINGS, FleetCheck, check_fleet
from nephoscope.report import report_files
from nephoscope.results import analyse_run
from nephoscope.store import FINISHED, StoredRun

NAMES = [f"node{at:02d}" for at in range(20)]
PLAN = f"""
name: fleet
warmup: 0
repeat: {{min: 3, max: 3}}
targets: [{", ".join(f"{{name: {name}}}" for name in NAMES)}]
benchmarks:
  - {{benchmark: cpu.hash, params: {{threads: 1}}}}
  - {{benchmark: disk.sync}}
  - {{benchmark: net.rtt, on: [{", ".join(NAMES[1:])}], peer: node00}}
"""


def sampler(faults: Mapping[str, str]) -> Any:
    def sampled(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        seed = (setting.index, number, NAMES.index(target))
        noise = float(np.exp(0.03 * np.random.default_rng(seed).standard_normal()))
        fault = faults.get(target)
        if setting.benchmark == "cpu.hash":
            return [Sample("hash_bytes_per_s", 1e9 * noise * (0.5 if fault == "cpu" else 1))]
        if setting.benchmark == "disk.sync":
            return [Sample("sync_latency_ns", 2e6 * noise * (8 if fault == "disk" else 1), 50)]
        lost = 20 if fault == "loss" else 0
        return [
            Sample("rtt_ns", 100e3 * noise, 200 - lost),
            Sample("sent_count", 200),
            Sample("loss_ratio", lost / 200, factors={"direction": "both"}),
        ]

    return sampled


def stored(folder: Path, faults: Mapping[str, str], **settings: Any) -> StoredRun:
    run = make_run(folder, PLAN, sampler(faults), rounds=2)
    run.update(**{SETTINGS: settings})
    return run


def test_three_planted_faults_are_named(tmp_path: Path) -> None:
    run = stored(tmp_path, {"node03": "cpu", "node11": "disk", "node17": "loss"})
    result = analyse_run.build(run)
    found = result.part(FleetCheck)
    assert found is not None
    assert [one.target for one in found.odd] == ["node03", "node11", "node17"]
    cpu, disk, loss = (one.sentence for one in found.odd)
    assert "node03: cpu.hash throughput" in cpu
    assert "times the median of the fleet" in cpu
    assert "disk.sync" in disk
    assert "10 % of the packets" in loss
    page = report_files.write(result, run.report_path).markdown.read_text(encoding="utf-8")
    assert "3 of 20 targets differ from the others." in page


def test_a_healthy_fleet_is_quiet(tmp_path: Path) -> None:
    found = analyse_run.build(stored(tmp_path, {})).part(FleetCheck)
    assert found is not None
    assert found.odd == ()
    assert len(found.metrics) == 4  # with packet loss


def test_facts_that_are_not_compared_are_named_where_they_differ(tmp_path: Path) -> None:
    run = stored(tmp_path, {})
    known = {name: {"cpu": {"microcode": f"0x{n % 2}"}} for n, name in enumerate(NAMES)}
    run.update(fingerprints=known)
    result = analyse_run.build(run)
    (hidden,) = result.part(FleetCheck).hidden_settings  # type: ignore[union-attr]
    assert (hidden.name, hidden.values) == ("microcode", ("0x0", "0x1"))
    page = report_files.write(result, run.report_path).markdown.read_text(encoding="utf-8")
    assert "The merged records differ in: microcode (0x0; 0x1)." in page


def test_a_stored_run_is_checked_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = stored(tmp_path, {"node03": "cpu"})
    words = ["fleet", "--run", run.id, "--store", str(tmp_path)]
    assert command_line.main([*words, "--json", "--false-alarms", "1%"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["false_alarms"] == 0.01
    assert [one["target"] for one in document["odd"]] == ["node03"]
    assert command_line.main([*words, "--margin", "90%"]) == 1  # a half is more than 90 % beyond
    assert "node03" in capsys.readouterr().out


def test_facts_of_one_target_are_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = filled(tmp_path, 1)[0]
    run.finish(FINISHED)
    assert command_line.main(["fleet", "--run", run.id, "--store", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "Compared: no metric; no fact." in text
    assert "facts: 3 targets are needed." in text


def port(**facts: Any) -> dict[str, Any]:
    usual = {"name": "eth0", "duplex": "full", "speed_bits_per_s": 10**9, "mtu_bytes": 1500}
    return {"nics": {"ports": [{**usual, **facts}]}, "limits": {"cpu_quota_cpus": None}}


def test_ports_quotas_and_clocks() -> None:
    documents: dict[str, Any] = {name: port() for name in NAMES}
    documents["node02"] = port(duplex="half", speed_bits_per_s=10**7)
    documents["node05"] = port(mtu_bytes=1400)
    documents["node08"] = {**port(), "limits": {"cpu_quota_cpus": 0.5}}
    offsets = dict.fromkeys(NAMES, (1000000.0, 2000000.0)) | {
        "node09": (3e9, 1e6),
        "node10": (4e8, 1e9),
    }
    found = check_fleet(NAMES, {}, documents, losses={}, offsets=offsets)
    assert [one.sentence for one in found.odd] == [
        "node02: speed of network port eth0 is 10.0 Mbit/s; 19 of 20 targets have 1.00 Gbit/s.",
        "node02: duplex of network port eth0 is half; 19 of 20 targets have full.",
        "node05: MTU of network port eth0 is 1400; 19 of 20 targets have 1500.",
        "node08: CPU quota is 0.5; 19 of 20 targets have none.",
        # node10's clock may be right within what could be measured.
        "node09: its clock is 3.00 s (± 1.00 ms) ahead of the fleet's median.",
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "needs either targets, a lab or a stored run"),
        (("--run", "x", "--lab", "y"), "needs either"),
        (("--target", "local"), "A fleet needs 3 targets or more, not 1."),
        (("--lab", "nothing"), "nothing"),
        (("--run", "nothing"), "There is no run"),
        (("--target", "local", "--false-alarms", "0"), "out of range"),
        (("--target", "local", "--margin", "much"), "is no ratio"),
    ],
)
def test_bad_input_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    assert command_line.main(["fleet", "--store", str(tmp_path), *words]) not in (0, 1)
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert sentence in told
