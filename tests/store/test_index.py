"""The list of runs follows the files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tests.results.made import NULL_PLAN, TWO_TARGETS, make_run

from nephoscope.core.errors import StoreError
from nephoscope.core.model import Sample
from nephoscope.store import RUNNING, Store, StoredRun, index
from nephoscope.store.index import RunIndex
from nephoscope.store.listing import row_of


@pytest.fixture(autouse=True)
def _look_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "POLL_INTERVAL_S", 0.0)
    monkeypatch.setattr(index, "STALE_S", 0.0)


def made(store: Path, plan: str = NULL_PLAN, state: str = "finished", rounds: int = 1) -> StoredRun:
    return make_run(store, plan, lambda *_: [Sample("null_ns", 1.0)], rounds=rounds, state=state)


def test_rows_are_those_of_the_command_newest_first(tmp_path: Path) -> None:
    runs = [made(tmp_path), made(tmp_path, TWO_TARGETS)]
    snapshot = RunIndex(Store(tmp_path)).snapshot()
    assert [run.row for run in snapshot.runs] == [row_of(run) for run in reversed(runs)]
    assert snapshot.runs[0].kinds == {"one": "local", "two": "local"}
    assert snapshot.is_complete


def test_nothing_is_read_again_while_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path)
    runs = RunIndex(Store(tmp_path))
    first = runs.snapshot()
    monkeypatch.setattr(index, "_read", None)  # a call would fail
    assert runs.snapshot() is first


def test_labels_new_runs_and_removed_runs_are_seen(tmp_path: Path) -> None:
    first = made(tmp_path)
    runs = RunIndex(Store(tmp_path))
    runs.snapshot()
    first.update(labels={"rack": "7"})
    second = made(tmp_path)
    snapshot = runs.snapshot()
    assert snapshot.by_id[first.id].row.labels == {"rack": "7"}
    assert second.id in snapshot.by_id
    Store(tmp_path).remove(first)
    assert [run.row.id for run in runs.snapshot().runs] == [second.id]


def test_a_run_in_progress_is_followed_to_its_end(tmp_path: Path) -> None:
    run = made(tmp_path)
    run.update(state=RUNNING)
    runs = RunIndex(Store(tmp_path))
    assert runs.snapshot().runs[0].row.state == "killed"
    with run.lock():
        run.event({"event": "session_started", **_identity()})
        entry = runs.snapshot().runs[0]
        assert entry.row.state == "running"
        assert entry.process is not None
        assert runs.snapshot().measured_here is not None
    run.event({"event": "session_ended", "why": "interrupted"})
    assert runs.snapshot().runs[0].row.state == "interrupted"
    run.finish("finished")
    assert runs.snapshot().runs[0].row.state == "finished"
    assert runs.snapshot().measured_here is None


def _identity() -> dict[str, object]:
    from nephoscope.store import identity

    return identity()


def test_a_damaged_run_is_named_and_read_again_once_it_is_repaired(tmp_path: Path) -> None:
    run = made(tmp_path)
    manifest = run.path / "manifest.json"
    content = manifest.read_bytes()
    manifest.write_bytes(b"{")
    runs = RunIndex(Store(tmp_path))
    snapshot = runs.snapshot()
    assert snapshot.runs == ()
    assert str(manifest) in snapshot.damaged[0]
    assert runs.snapshot() is snapshot
    (run.path / "new").write_bytes(content)
    (run.path / "new").rename(manifest)
    assert [entry.row.id for entry in runs.snapshot().runs] == [run.id]


def test_many_runs_are_read_over_several_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [made(tmp_path).id for _ in range(3)]
    monkeypatch.setattr(index, "READ_TIME_S", -1.0)
    runs = RunIndex(Store(tmp_path))
    assert not runs.snapshot().is_complete
    assert runs.snapshot().total == 3
    monkeypatch.setattr(index, "READ_TIME_S", 60.0)
    assert {run.row.id for run in runs.snapshot().runs} == {*ids}


def test_a_store_that_is_not_there_has_no_runs(tmp_path: Path) -> None:
    snapshot = RunIndex(Store(tmp_path / "none")).snapshot()
    assert (snapshot.runs, snapshot.total, snapshot.is_complete) == ((), 0, True)


def settled(*runs: StoredRun) -> None:
    """Makes manifests old enough to be kept in the list."""
    for run in runs:
        os.utime(run.path / "manifest.json", (0, 0))


def test_a_second_process_reads_the_list_and_no_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [made(tmp_path), made(tmp_path, TWO_TARGETS)]
    settled(*runs)
    first = RunIndex(Store(tmp_path)).whole()
    monkeypatch.setattr(index, "_read", None)  # a call would fail
    second = RunIndex(Store(tmp_path)).whole()
    assert second.runs == first.runs
    assert [run.row.id for run in second.runs] == [run.id for run in reversed(runs)]


@pytest.mark.parametrize("content", [b"", b"{}\n", None])
def test_a_list_that_is_damaged_or_missing_is_made_again(
    tmp_path: Path, content: bytes | None
) -> None:
    run = made(tmp_path)
    settled(run)
    expected = RunIndex(Store(tmp_path)).whole().runs
    path = tmp_path / "runs" / index.FILE
    whole = path.read_bytes()
    for damaged in (content, whole.replace(b"finished", b"finishes"), whole[:-5]):
        path.unlink()
        if damaged is not None:
            path.write_bytes(damaged)
        assert RunIndex(Store(tmp_path)).whole().runs == expected
        assert path.read_bytes() == whole


def test_what_changed_since_the_list_was_kept_is_read_again(tmp_path: Path) -> None:
    kept, removed = made(tmp_path), made(tmp_path)
    settled(kept, removed)
    RunIndex(Store(tmp_path)).whole()
    kept.update(labels={"rack": "7"})
    Store(tmp_path).remove(removed)
    (run,) = RunIndex(Store(tmp_path)).whole().runs
    assert run.row == row_of(kept)
    (kept.path / "manifest.json").write_bytes(b"{")
    assert str(kept.path) in RunIndex(Store(tmp_path)).whole().damaged[0]


def test_a_run_in_progress_is_not_kept(tmp_path: Path) -> None:
    run = made(tmp_path, state=RUNNING)
    settled(run, made(tmp_path))
    RunIndex(Store(tmp_path)).whole()
    assert run.id not in (tmp_path / "runs" / index.FILE).read_text()
    run.finish("finished")
    assert RunIndex(Store(tmp_path)).whole().by_id[run.id].row.state == "finished"


def test_a_store_that_cannot_be_written_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise StoreError("It is read-only.")

    run = made(tmp_path)
    monkeypatch.setattr(index, "write_atomically", refuse)
    assert [one.row.id for one in RunIndex(Store(tmp_path)).whole().runs] == [run.id]


def test_a_link_that_leads_nowhere_is_a_damaged_run(tmp_path: Path) -> None:
    """As where runs were moved to a disk that is not mounted now."""
    run = made(tmp_path)
    elsewhere = run.path.rename(tmp_path / "elsewhere")
    run.path.symlink_to(elsewhere)
    runs = RunIndex(Store(tmp_path))
    assert [one.row.id for one in runs.whole().runs] == [run.id]
    elsewhere.rename(tmp_path / "gone")
    snapshot = runs.whole()
    assert (snapshot.runs, len(snapshot.damaged)) == ((), 1)
    assert RunIndex(Store(tmp_path)).whole().damaged == snapshot.damaged
    (tmp_path / "gone").rename(elsewhere)
    assert [one.row.id for one in runs.whole().runs] == [run.id]


def test_a_run_whose_folder_was_emptied_is_a_damaged_run(tmp_path: Path) -> None:
    run = made(tmp_path)
    runs = RunIndex(Store(tmp_path))
    runs.whole()
    shutil.rmtree(run.path)
    run.path.mkdir()
    assert [len(part) for part in (runs.whole().runs, runs.whole().damaged)] == [0, 1]


def test_a_list_is_written_when_what_it_keeps_has_changed(tmp_path: Path) -> None:
    settled(made(tmp_path))
    made(tmp_path, state=RUNNING)
    RunIndex(Store(tmp_path)).whole()
    file = tmp_path / "runs" / index.FILE
    before = file.stat().st_ino
    RunIndex(Store(tmp_path)).whole()
    assert file.stat().st_ino == before
    settled(made(tmp_path))
    RunIndex(Store(tmp_path)).whole()
    assert file.stat().st_ino != before


@pytest.mark.slow
def test_a_list_of_many_runs_opens_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [made(tmp_path) for _ in range(100)]
    settled(*runs)
    RunIndex(Store(tmp_path)).whole()
    opened: list[Path] = []
    real = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: opened.append(path) or real(path))
    assert len(RunIndex(Store(tmp_path)).whole().runs) == 100
    assert opened == [tmp_path / "runs" / index.FILE]
