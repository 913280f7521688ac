"""One plan of a thousand targets from one controller: 50 lab hosts and 950 recorded targets."""

from __future__ import annotations

import json
import os
import resource
import secrets
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.tools import needs

from nephoscope.core.model import TrialStatus
from nephoscope.store import Store, StoredRun

pytestmark = [
    pytest.mark.slow,
    pytest.mark.alone,
    pytest.mark.usefixtures("root_only", "probe"),
    needs("ip", "tc"),
]

HOSTS, TARGETS, ROUNDS = 50, 1000, 10
AT_ONCE = 16
"""So that the controller leaves the lab hosts, which share its CPUs, undisturbed."""
MEMORY_BYTES = 1 << 30
OVERHEAD_RATIO = 0.05
BENCHMARK = {"benchmark": "cpu.hash", "params": {"threads": 1, "duration_ns": "500ms"}}


def command(store: Path, *words: str) -> tuple[int, float]:
    """Runs a command; returns its exit code and how long it took."""
    began = time.monotonic()
    words = (sys.executable, "-m", "nephoscope", *words, "--store", str(store))
    done = subprocess.run(words, stdout=subprocess.DEVNULL, check=False)
    return done.returncode, time.monotonic() - began


def plan(folder: Path, name: str, hosts: int, **more: Any) -> str:
    values = {
        "version": 1,
        "name": name,
        "seed": 92,
        "benchmarks": [BENCHMARK],
        "targets": [{"name": f"h{number}", "kind": "lab"} for number in range(hosts)],
        "lab": {
            "version": 1,
            "name": f"t{secrets.token_hex(3)}",
            "hosts": {f"h{number}": {} for number in range(hosts)},
        },
        **more,
    }
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps(values))
    return str(path)


def newest(store: Path) -> StoredRun:
    return Store(store).runs()[-1]


def test_a_thousand_targets_ten_rounds(tmp_path: Path) -> None:
    store, recorded = tmp_path / "store", tmp_path / "hosts.jsonl"
    origin = plan(tmp_path, "origin", 2, repeat={"min": 20, "max": 20})
    assert command(store, "run", origin)[0] == 0
    words = ("--format", "recording", "--output", str(recorded))
    assert command(store, "export", "latest", *words)[0] == 0

    replays = {"name": "r", "kind": "recorded", "file": str(recorded), "count": TARGETS - HOSTS}
    whole = plan(
        tmp_path,
        "thousand",
        HOSTS,
        repeat={"min": ROUNDS, "max": ROUNDS},
        concurrent=True,
        max_concurrent=AT_ONCE,
    )
    values = json.loads(Path(whole).read_text())
    values["targets"].append(replays)
    Path(whole).write_text(json.dumps(values))
    code, wall_s = command(store, "run", whole)

    run = newest(store)
    manifest, records = run.manifest, run.records()
    load = manifest.controller
    peak_bytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    overhead = load["cpu_s"] / load["trials_s"]
    measured = [record for record in records if record.key.round > 0]
    invalid = Counter(
        code
        for record in measured
        if record.status is not TrialStatus.VALID
        for code in record.reason_codes
    )
    load_1m = os.getloadavg()[0]
    text = (
        f"\n{len(manifest.target_names)} targets, {ROUNDS} rounds, {len(measured)} trials and "
        f"{len(records) - len(measured)} of warm-up in {load['elapsed_s']:.0f} s (command "
        f"{wall_s:.0f} s, load {load_1m:.1f}): {len(manifest.lost)} lost; controller "
        f"{load['cpu_s']:.1f} s of CPU, {1e3 * load['cpu_s'] / load['trials']:.2f} ms a trial, "
        f"{overhead:.2%} of {load['trials_s']:.0f} s of trials; peak "
        f"{load['peak_memory_bytes'] / 2**20:.0f} MiB measuring, {peak_bytes / 2**20:.0f} MiB "
        f"with the report; silent for at most {load['late_ns'] / 1e6:.0f} ms; not valid: "
        f"{dict(invalid)}"
    )
    print(text)  # noqa: T201
    assert code == 0
    assert len(manifest.target_names) == TARGETS
    assert manifest.lost == {}
    assert Counter(record.key.target for record in measured) == Counter(
        dict.fromkeys(manifest.target_names, ROUNDS)
    )
    assert len(manifest.recorded_targets) == TARGETS - HOSTS
    assert max(peak_bytes, load["peak_memory_bytes"]) < MEMORY_BYTES
    assert overhead < OVERHEAD_RATIO
