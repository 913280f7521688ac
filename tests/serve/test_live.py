"""The stream of a run in progress, read from its files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.results.made import NULL_PLAN, make_run
from tests.unmerged import unmerge

from nephoscope.core.model import Sample, Setting
from nephoscope.httpd.responses import Refusal
from nephoscope.serve import live
from nephoscope.serve.live import Live, RunFiles
from nephoscope.store import RUNNING, StoredRun, identity

GAPS_PLAN = NULL_PLAN.replace('"null"', "cpu.gaps")


def sampler(setting: Setting, number: int, target: str) -> Sequence[Sample]:
    if setting.benchmark == "null":
        return [Sample("null_ns", value) for value in (1.0 + number, 2.0 + number, 9.0)]
    return [
        Sample("cpu_share_ratio", 0.9, factors={"cpu": 0, "process": 0}),
        *(Sample("gap_event_ns", 1000.0 * (n + 1), at_ns=10_000 - n) for n in range(300)),
    ]


def run_of(
    store: Path, plan: str = NULL_PLAN, rounds: int = 2, invalid: tuple[int, ...] = ()
) -> StoredRun:
    return make_run(store, plan, sampler, rounds=rounds, invalid=invalid, one_by_one=True)


def kinds(events: Sequence[tuple[str, Any]]) -> list[str]:
    return [kind for kind, _ in events]


def test_a_finished_run_is_told_and_ends(tmp_path: Path) -> None:
    run = run_of(tmp_path, invalid=(2,))
    events = RunFiles(StoredRun(run.path)).new_events()
    trials = [content for kind, content in events if kind == "trial"]
    assert [trial["trial"] for trial in trials] == [
        "w0000-s000-local",
        "r0001-s000-local",
        "r0002-s000-local",
    ]
    assert trials[1]["values"] == [
        {
            "benchmark": "null",
            "metric": "null_ns",
            "target": "local",
            "factors": "{}",
            "unit": "ns",
            "label": "null",
            "value": 3.0,
            "n": 3,
        }
    ]
    assert (trials[2]["status"], trials[2]["reasons"]) == ("invalid", ["the test says so"])
    assert kinds(events)[-2:] == ["status", "end"]
    assert events[-2][1]["trials"] == 3
    json.dumps([content for _, content in events], allow_nan=False)


def test_trials_that_were_stored_together_are_told(tmp_path: Path) -> None:
    """As an import stores them."""
    made = [make_run(tmp_path / name, NULL_PLAN, sampler, one_by_one=name == "a") for name in "ab"]
    one_by_one, together = (RunFiles(StoredRun(run.path)).new_events() for run in made)
    named = [
        [content["trial"] for kind, content in e if kind == "trial"] for e in (one_by_one, together)
    ]
    assert named[0] == named[1] != []
    assert together[-2][1]["trials"] == len(named[0])


def test_only_what_was_added_is_told(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    run.update(state=RUNNING)
    with run.lock():
        run.event({"event": "session_started", **identity()})
        files = RunFiles(StoredRun(run.path))
        files.new_events()
        assert files.new_events() == []
        run.event({"event": "trial_started", "trial": "r0003-s000-local"})
        assert kinds(files.new_events()) == ["journal"]
    run.finish("finished")
    events = files.new_events()
    assert kinds(events) == ["status", "end"]
    assert events[0][1]["state"] == "finished"


def test_gaps_are_the_longest_in_order_of_time(tmp_path: Path) -> None:
    events = RunFiles(StoredRun(run_of(tmp_path, GAPS_PLAN, rounds=1).path)).new_events()
    trial = [content for kind, content in events if kind == "trial"][-1]
    assert trial["gaps_total"] == 300
    assert len(trial["gaps"]) == live.MAX_GAPS
    assert trial["gaps"] == sorted(trial["gaps"])
    assert min(length for _, length in trial["gaps"]) == 1000.0 * (300 - live.MAX_GAPS + 1)


def test_a_damaged_trial_is_a_problem_and_the_others_are_told(tmp_path: Path) -> None:
    run = unmerge(run_of(tmp_path))
    (run.trials_path / "r0001-s000-local.parquet").write_bytes(b"PAR1")
    events = RunFiles(StoredRun(run.path)).new_events()
    assert kinds(events).count("trial") == 2
    (problem,) = [content for kind, content in events if kind == "problem"]
    assert "r0001-s000-local.parquet is damaged" in problem["error"]


def test_who_comes_late_gets_the_last_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MAX_TRIALS_READ", 2)
    events = RunFiles(StoredRun(run_of(tmp_path, rounds=5).path)).new_events()
    trials = [content["trial"] for kind, content in events if kind == "trial"]
    assert trials == ["r0004-s000-local", "r0005-s000-local"]
    (status,) = [content for kind, content in events if kind == "status"]
    assert (status["trials"], status["trials_omitted"]) == (6, 4)


async def texts(run: StoredRun, streams: Live, last_id: str = "") -> list[str]:
    return [text async for text in streams.stream(run, last_id)]


def test_a_stream_has_numbered_events_and_ends(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    lines = asyncio.run(texts(StoredRun(run.path), Live()))
    assert lines[0].startswith("retry: ")
    assert lines[-1].endswith("\n\n")
    assert "event: end" in lines[-1]
    numbers = [line.splitlines()[0].rpartition(".")[2] for line in lines[1:]]
    assert numbers == [str(number + 1) for number in range(len(numbers))]


def test_an_unexpected_error_ends_the_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(files: RunFiles) -> Any:
        raise RuntimeError("nobody thought of it")

    monkeypatch.setattr(RunFiles, "new_events", fail)
    run = StoredRun(run_of(tmp_path).path)
    lines = asyncio.run(asyncio.wait_for(texts(run, Live()), 120))
    assert "nobody thought of it" in lines[-2]
    assert "event: end" in lines[-1]


def test_readers_share_one_look_and_a_returning_one_misses_nothing(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    run.update(state=RUNNING)

    async def follow() -> None:
        streams = Live()
        with run.lock():
            run.event({"event": "session_started", **identity()})
            first = streams.stream(StoredRun(run.path))
            second = streams.stream(StoredRun(run.path))
            seen = [await anext(first) for _ in range(4)]
            assert [await anext(second) for _ in range(4)] == seen
            assert len(streams._followed) == 1
            await second.aclose()
            last_id = seen[-1].splitlines()[0].removeprefix("id: ")
            returned = streams.stream(StoredRun(run.path), last_id)
            await anext(returned)
            assert await anext(returned) == await anext(first)
            odd = streams.stream(StoredRun(run.path), last_id.partition(".")[0] + ".²")
            assert [await anext(odd) for _ in range(4)] == seen
            await odd.aclose()
        run.finish("finished")
        rest = [text async for text in first]
        assert "event: end" in rest[-1]
        assert [text async for text in returned] == rest
        assert streams._followed == {}, "nothing is followed any more"

    asyncio.run(asyncio.wait_for(follow(), 120))


def test_events_that_nobody_took_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "KEEP_EVENTS", 5)
    lines = asyncio.run(texts(StoredRun(run_of(tmp_path, rounds=20).path), Live()))
    assert len(lines) == 1 + 5
    assert "event: end" in lines[-1]


def test_readers_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MAX_READERS", 1)
    run = run_of(tmp_path)

    async def follow() -> None:
        streams = Live()
        streams.check_capacity()
        reader = streams.stream(StoredRun(run.path))
        await anext(reader)
        with pytest.raises(Refusal, match="Too many pages"):
            streams.check_capacity()
        await reader.aclose()
        streams.check_capacity()

    asyncio.run(follow())
