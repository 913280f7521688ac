"""Events on disk: state after a restart, damaged and cut-off lines, bounded size."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.features.watch.made import START_S

from nephoscope.features.watch import events as module
from nephoscope.features.watch.events import EventLog, State, events, state_of


def now_s() -> float:
    return START_S


def filled(folder: Path, count: int) -> EventLog:
    folder.mkdir(exist_ok=True)
    log = EventLog(folder, now_s)
    for number in range(count):
        log.append("repetition_started", due_s=START_S + number)
        log.append("run_created", run=f"run-{number}")
        log.append("target_failed", target="b", failures=number + 1, skips=3, sentence="gone")
        log.append("repetition_ended", run=f"run-{number}", verdict="fine", sync=True)
    return log


def test_a_restart_has_the_state_of_before(tmp_path: Path) -> None:
    log = filled(tmp_path, 5)
    state = state_of(tmp_path)
    assert state == log.state == EventLog(tmp_path, now_s).state
    assert (state.due_s, state.last_run, state.open) == (START_S + 4, "run-4", False)
    assert state.counts["repetition_ended"] == 5
    assert state.failing == {"b": [5, 3, "gone"]}


def test_full_files_are_compressed_and_the_oldest_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FILE_BYTES", 2000)
    monkeypatch.setattr(module, "MAX_FILES", 4)
    log = filled(tmp_path, 100)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) <= 5
    assert all(name.endswith(".gz") for name in names[:-1])
    assert state_of(tmp_path) == log.state
    assert log.state.counts["repetition_ended"] == 100, "counts outlive the lines"
    kept = [event["run"] for event in events(tmp_path) if event["event"] == "repetition_ended"]
    assert kept == [f"run-{number}" for number in range(100 - len(kept), 100)]
    assert 4 < len(kept) < 100


def test_a_cut_off_line_is_no_event_and_a_damaged_one_costs_itself_alone(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    (file,) = tmp_path.iterdir()
    lines = file.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"run-0", b"run-9")
    file.write_bytes(b"".join(lines) + b'{"at": "2026')
    assert state_of(tmp_path).counts["repetition_ended"] == 3
    assert state_of(tmp_path).counts["run_created"] == 2
    EventLog(tmp_path, now_s).append("watch_started")
    assert [event["event"] for event in events(tmp_path)][-2:] == [
        "repetition_ended",
        "watch_started",
    ]


def test_a_file_whose_beginning_is_damaged_is_read_back_to_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FILE_BYTES", 2000)
    log = filled(tmp_path, 6)
    newest = max(tmp_path.iterdir())
    content = newest.read_bytes()
    newest.write_bytes(content.replace(b"continued", b"continueX", 1))
    assert state_of(tmp_path) == log.state


@pytest.mark.parametrize("max_files", [200, 1])
def test_a_file_that_is_compressed_or_removed_while_events_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_files: int
) -> None:
    log = filled(tmp_path, 3)
    listed = module._files(tmp_path)
    monkeypatch.setattr(module, "FILE_BYTES", 1)
    monkeypatch.setattr(module, "MAX_FILES", max_files)
    log.append("watch_stopped")
    log.append("watch_started")
    monkeypatch.setattr(module, "_files", lambda _: listed)
    kept = [event["event"] for event in events(tmp_path)]
    assert kept.count("repetition_ended") == (3 if max_files > 1 else 0)


def test_no_events_are_an_empty_state(tmp_path: Path) -> None:
    assert state_of(tmp_path / "missing") == State()
