"""A run is recorded and replayed by the commands; whatever shows the replay says that it is one."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from .conftest import Run

PLAN = """\
version: 1
name: {name}
warmup: 0
targets: [{target}]
benchmarks: [{{benchmark: "null", params: {{value: 50}}}}]
repeat: {{min: 6, max: 6}}
concurrent: true
"""


def test_a_recording_is_replayed_by_many_targets(nephoscope: Run, tmp_path: Path) -> None:
    store, file = tmp_path / "store", tmp_path / "night.jsonl"
    origin, fleet = tmp_path / "origin.yaml", tmp_path / "fleet.yaml"
    origin.write_text(PLAN.format(name="origin", target="{name: a}"))
    many = f"{{name: n, kind: recorded, file: {file}, count: 20, speed: 50}}"
    fleet.write_text(PLAN.format(name="fleet", target=many))
    with_store = ("--store", store)

    assert nephoscope("run", origin, *with_store).code == 0
    words = ("--format", "recording", "--output", file)
    assert nephoscope("export", "latest", *words, *with_store).code == 0
    assert nephoscope("export", "latest", *words[:2], *with_store).code == 2

    done = nephoscope("run", fleet, *with_store)
    assert done.code == 0
    text = " ".join(done.out.split())
    assert "All 20 targets answer from a recording of run" in text
    assert "these results are a replay, no new measurement." in text
    assert "lowest of 20: n-" in text
    assert "highest of 20: n-" in text
    assert done.out.count("\n") <= 32, "one screen, however many targets"

    listed = nephoscope("runs", *with_store).out
    assert "recorded=all" in listed
    assert "n-1, n-2, n-3, n-4 and 16 others" in listed

    document = json.loads(nephoscope("show", "latest", "--json", *with_store).out)
    assert "a replay, no new measurement" in document["run"]["recorded"]
    rows = list(csv.DictReader(nephoscope("export", "latest", *with_store).out.splitlines()))
    assert {row["recorded"] for row in rows} == {"True"}

    full = " ".join(nephoscope("show", "latest", "--full-report", *with_store).out.split())
    assert "The controller used" in full
    assert "120 trials (" in full
    assert "is a replay of a recording" in nephoscope("show", "latest", *with_store).err

    again = nephoscope("export", "latest", *words, *with_store)
    assert again.code == 2
    assert "measured nothing to record" in again.err

    history = nephoscope("history", "null_ns", *with_store)
    assert "is left out: it is a replay of a recording" in " ".join(
        (history.out + history.err).split()
    )
    replays = nephoscope("history", "null_ns", "--label", "recorded=all", *with_store)
    assert "is left out" not in replays.out


def test_a_preview_of_many_targets_is_short(nephoscope: Run, tmp_path: Path) -> None:
    file, fleet = tmp_path / "night.jsonl", tmp_path / "fleet.yaml"
    head = {"recording": 1, "run": "r", "measured_at": 0, "nephoscope": "0", "protocol": 3}
    trial = {"target": "a", "benchmark": "null", "params": {}, "ready_s": 0, "elapsed_s": 0}
    answer = {"answer": [{"error": {"name": "x", "message": "", "hint": ""}}]}
    lines = [head, {"target": "a", "fingerprint": {}}, {**trial, **answer}]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    many = f"{{name: n, kind: recorded, file: {file}, count: 1000}}"
    fleet.write_text(PLAN.format(name="fleet", target=many))
    done = nephoscope("run", fleet, "--dry-run", "--store", tmp_path / "store")
    assert done.code == 0
    assert "… and 960 more (--json)" in done.out
    assert "n-1, n-2, n-3, n-4, n-5, n-6, n-7, n-8, 992 others" in done.out
    assert done.out.count("\n") < 120
