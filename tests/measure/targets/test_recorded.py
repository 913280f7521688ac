"""Targets that answer from a recording: the same samples, at the same pace, and marked."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.measure.runs.factory import Fakes, failed, good

from nephoscope import catalog
from nephoscope.core.errors import (
    BenchmarkFailed,
    PlanError,
    ReplayedRun,
    TargetError,
    UsageError,
)
from nephoscope.measure import plans, runs
from nephoscope.measure.plans.files.load import from_values
from nephoscope.measure.runs.trials import target_pool
from nephoscope.measure.targets import parse
from nephoscope.measure.targets.kinds.recorded import RecordedRecord
from nephoscope.measure.targets.recording import read
from nephoscope.store import Store, StoredRun, recording

VALUES = {"a": 100.0, "b": 200.0}


def execute(path: Path, targets: list[dict[str, Any]], **more: Any) -> StoredRun:
    values = {
        "name": "p",
        "seed": 3,
        "warmup": 0,
        "repeat": {"min": 4, "max": 4},
        "targets": targets,
        "benchmarks": [{"benchmark": "null"}],
        **more,
    }
    fakes = Fakes(lambda name, _, call: good(VALUES[name] + call, steal_ratio=0.25), takes_s=0.03)
    plan = from_values(values, catalog.load(), lambda _: "")
    if any(target.get("kind") == "recorded" for target in targets):
        return runs.execute(plan, Store(path))
    return runs.execute(plan, Store(path), targets=fakes.make)


@pytest.fixture
def origin(tmp_path: Path) -> StoredRun:
    return execute(tmp_path / "store", [{"name": "a"}, {"name": "b"}])


@pytest.fixture
def file(origin: StoredRun, tmp_path: Path) -> Path:
    path = tmp_path / "pair.jsonl"
    recording.write(origin, path)
    return path


def replayed(tmp_path: Path, file: Path, **keys: Any) -> StoredRun:
    target = {"name": "r", "kind": "recorded", "file": str(file), "speed": 100, **keys}
    return execute(tmp_path / "replays", [target])


def values_of(run: StoredRun, target: str) -> list[float]:
    tables = [table for record, table in run.tables() if record.key.target == target]
    return [value for table in tables for value in table["value"].to_pylist()]


def test_a_replay_has_the_samples_and_counters_of_the_recorded_run(
    tmp_path: Path, origin: StoredRun, file: Path
) -> None:
    run = replayed(tmp_path, file, source="a")
    assert values_of(run, "r") == values_of(origin, "a") == [101.0, 102.0, 103.0, 104.0]
    records = run.records()
    assert {record.counters["steal_ratio"] for record in records} == {0.25}
    assert {record.elapsed_ns for record in records} == {30_000_000}


def test_a_replay_is_marked_wherever_it_is_stored(
    tmp_path: Path, origin: StoredRun, file: Path
) -> None:
    run = replayed(tmp_path, file)
    assert run.manifest.recorded_targets == ("r",)
    assert run.labels == {"recorded": "all"}
    reached = run.manifest.fingerprints["r"]["reached"]
    assert (reached["by"], reached["run"], reached["target"]) == ("recording", origin.id, "a")
    assert "identity" not in run.manifest.fingerprints["r"], "it is not that machine"
    for record in run.records():
        assert f"Replayed from a recording of run {origin.id}" in record.notes[-1]
    assert origin.labels == {}
    store = Store(tmp_path / "replays")
    assert not [*store.each(pytest.fail, replays=False)]
    assert [own.id for own in store.runs()] == [run.id]
    with pytest.warns(ReplayedRun, match="is a replay of a recording"):
        store.open("latest")


def test_targets_take_the_recorded_ones_in_turn_and_are_no_copies(
    tmp_path: Path, file: Path
) -> None:
    run = replayed(tmp_path, file, count=4)
    assert values_of(run, "r-1") == [101.0, 102.0, 103.0, 104.0]
    assert values_of(run, "r-2") == [201.0, 202.0, 203.0, 204.0]
    assert values_of(run, "r-3") == [102.0, 103.0, 104.0, 101.0]
    assert values_of(replayed(tmp_path, file, count=4), "r-4") == values_of(run, "r-4")


def test_an_answer_takes_as_long_as_the_recorded_trial(file: Path) -> None:
    async def elapsed_s(speed: float) -> float:
        target = RecordedRecord(name="r", file=str(file), speed=speed).make()
        await target.open()
        began = time.monotonic()
        trial = await target.run("null", {}, 10)
        assert trial.done is not None
        return time.monotonic() - began

    assert asyncio.run(elapsed_s(1)) >= 0.03
    # Of no length, it takes what the event loop does, and what others leave it of a CPU.
    assert min(asyncio.run(elapsed_s(1e6)) for _ in range(9)) < asyncio.run(elapsed_s(0.5))


@pytest.mark.parametrize(
    ("benchmark", "params", "more", "name"),
    [
        ("null", {"value": 5.0}, {}, "not_recorded"),
        ("null", {}, {"serve": "127.0.0.1"}, "usage"),
    ],
)
def test_what_was_not_recorded_is_refused(
    file: Path, benchmark: str, params: Any, more: Any, name: str
) -> None:
    async def start() -> None:
        target = RecordedRecord(name="r", file=str(file)).make()
        await target.open()
        await target.start(benchmark, params, 10, **more)

    with pytest.raises(BenchmarkFailed) as refusal:
        asyncio.run(start())
    assert (refusal.value.name, refusal.value.exit_code) == (name, 2)


def test_no_program_runs_on_a_recording(file: Path) -> None:
    target = RecordedRecord(name="r", file=str(file)).make()
    with pytest.raises(TargetError, match="starts no program"):
        asyncio.run(target.command(["true"]))


def test_failures_and_losses_are_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_pool, "PAUSE_S", 0.0)
    calls = 0

    def answer(*_: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise TargetError("a hung up.", "Look for it.")
        return failed("no_luck") if calls == 2 else good()

    plan = plans.Plan.model_validate(
        {
            "name": "p",
            "warmup": 0,
            "benchmarks": [{"benchmark": "null"}],
            "repeat": {"min": 4, "max": 4},
        }
    )
    first = runs.execute(plan, Store(tmp_path / "store"), targets=Fakes(answer).make)
    path = tmp_path / "bad.jsonl"
    recording.write(first, path)
    failures = [record.failure_name for record in first.records()]
    again = [record.failure_name for record in replayed(tmp_path, path).records()]
    assert again == failures == ["", "no_luck", "target_lost", "", ""]


def test_a_recording_of_a_replay_is_refused(tmp_path: Path, file: Path) -> None:
    run = replayed(tmp_path, file)
    with pytest.raises(UsageError, match="measured nothing to record"):
        recording.write(run, tmp_path / "again.jsonl")


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        (0, '{"recording": 99, "run": "x", "protocol": 3}', "99"),
        (0, '{"recording": 1, "run": "x", "measured_at": 1, "protocol": 1}', "protocol 1"),
        (0, "[]", ":1: this is no line of a recording"),
        (3, '{"target": "a"}', ":4: this is no line of a recording"),
        (3, '{"target": "zz", "benchmark": "null", "params": {}}', ":4: this is no line"),
        (3, "nonsense", ":4: this is no line of a recording"),
    ],
)
def test_a_damaged_recording_is_an_error_of_one_sentence(
    file: Path, line: int, text: str, message: str
) -> None:
    lines = file.read_text().splitlines()
    lines[line] = text
    file.write_text("\n".join(lines))
    with pytest.raises(UsageError, match=message):
        read(str(file))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"file": "none.jsonl"}, "none.jsonl: there is no such file"),
        ({"file": ""}, "has no file"),
        ({"source": "zz"}, "has no target 'zz'"),
        ({"count": 1001}, "less than or equal to 1000|at most 1000"),
        ({"name": "r" * 38, "count": 100}, "is longer than 40 characters"),
    ],
)
def test_a_plan_says_what_is_wrong(
    tmp_path: Path, file: Path, keys: dict[str, Any], message: str
) -> None:
    target = {"name": "r", "kind": "recorded", "file": str(file), **keys}
    with pytest.raises(PlanError, match=message):
        execute(tmp_path / "x", [target])


def test_a_plan_has_no_more_targets_than_the_limit(tmp_path: Path, file: Path) -> None:
    target = {"name": "r", "kind": "recorded", "file": str(file), "count": 1000}
    with pytest.raises(PlanError, match="these are 1001 targets, and a plan has at most 1000"):
        execute(tmp_path / "x", [target, {"name": "local"}])


def test_a_benchmark_that_was_not_recorded_is_an_error_of_the_plan(
    tmp_path: Path, file: Path
) -> None:
    target = {"name": "r", "kind": "recorded", "file": str(file)}
    with pytest.raises(PlanError, match=r"has no trial of cpu.hash"):
        execute(tmp_path / "x", [target], benchmarks=[{"benchmark": "cpu.hash"}])


def test_the_form_of_the_command_line_names_the_file() -> None:
    record = parse("recorded:runs/Night One.jsonl")
    assert (record.kind, record.name) == ("recorded", "night-one")


def test_every_line_is_json(file: Path) -> None:
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line.get("target") for line in lines[:3]] == [None, "a", "b"]
    assert len(lines) == 1 + 2 + 8
