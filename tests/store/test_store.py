from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from nephoscope.core.errors import StoreError, UnknownName, UnreadableRun, UsageError
from nephoscope.measure import plans
from nephoscope.store import FAILED, FINISHED, MEASURED, RUNNING, Store, default_path
from nephoscope.store.holder import INTERRUPTED, KILLED, NOT_STARTED, identity
from nephoscope.store.run import StoredRun

from .factory import CATALOG, SPEC, new_run, record, samples


def test_a_new_run_says_what_it_is(tmp_path: Path) -> None:
    run, settings = new_run(tmp_path, seed=7)
    again = Store(tmp_path).open(run.id)
    assert again.manifest == run.manifest
    manifest = again.manifest
    assert (manifest.state, manifest.seed, manifest.plan_name) == (
        "running",
        7,
        "bench-null",
    )
    assert plans.Plan.model_validate(manifest.plan).seed == 7
    assert [setting["factors"] for setting in manifest.settings] == [
        dict(setting.factors) for setting in settings
    ]
    assert again.spec("null").metric("null_ns").unit == "ns"
    assert run.records() == []


def test_runs_that_begin_within_a_second_have_identifiers_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = map(bytes.fromhex, ["aaaa", "aaaa", "bbbb"])
    monkeypatch.setattr("nephoscope.store.store.os.urandom", lambda _: next(drawn))
    store = Store(tmp_path)
    store.runs_path.mkdir()
    assert store._unused_id("20261124-002028-p") == "20261124-002028-p-aaaa"
    (store.runs_path / "20261124-002028-p-aaaa").mkdir()
    assert store._unused_id("20261124-002028-p") == "20261124-002028-p-bbbb"


def test_ids_prefixes_and_latest(tmp_path: Path) -> None:
    first, _ = new_run(tmp_path)
    second, _ = new_run(tmp_path)
    store = Store(tmp_path)
    assert store.open("latest").id == second.id
    assert store.open(first.id).id == first.id
    unique = next(
        first.id[:length]
        for length in range(len(first.id))
        if first.id[:length] != second.id[:length]
    )
    assert store.open(unique).id == first.id
    with pytest.raises(UsageError, match="2 runs begin with") as caught:
        store.open(first.id[:8])
    assert first.id in str(caught.value)
    for name in ("nonsense", "", "../..", "*"):
        with pytest.raises(UnknownName, match="There is no run"):
            store.open(name)


def test_a_run_that_nobody_measures_is_not_running(tmp_path: Path) -> None:
    run, settings = new_run(tmp_path)
    assert run.status == NOT_STARTED
    with run.lock():
        assert Store(tmp_path).open(run.id).status == RUNNING
        run.event({"event": "session_started", "pid": 1})
        run.append(record(settings[0], 1, 0), samples(1.0), SPEC)
    assert run.status == KILLED, "its session has no end"
    run.event({"event": "session_ended", "why": "interrupted"})
    assert run.status == INTERRUPTED
    run.event({"event": "session_started", "pid": 2})
    assert run.status == KILLED
    run.finish(FINISHED)
    assert run.status == FINISHED


def test_an_abandoned_run_is_not_the_latest(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first, _ = new_run(tmp_path)
    assert store.open("latest").id == first.id, "there is no other"
    first.finish(FINISHED)
    second, _ = new_run(tmp_path)
    assert store.open("latest").id == first.id
    assert store.newest() is not None
    assert store.newest().id == second.id  # type: ignore[union-attr]
    with second.lock():
        assert store.open("latest").id == second.id, "it is being measured"


def test_an_empty_store_is_told(tmp_path: Path) -> None:
    assert Store(tmp_path / "none").runs() == []
    with pytest.raises(UnknownName, match="nephoscope survey"):
        Store(tmp_path / "none").open("latest")


def test_states_and_what_can_be_resumed(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path)
    store, key = Store(tmp_path), str(run.manifest.plan_hash)
    assert store.resumable("0" * 16) is None
    for state, resumes in ((MEASURED, True), (FINISHED, False), (FAILED, False)):
        run.finish(state)
        found = store.resumable(key)
        assert (found is not None and found.id == run.id) == resumes
        assert store.open(run.id).state == state
    with pytest.raises(ValueError, match="no state"):
        run.finish("done")


def test_the_newest_unfinished_run_is_resumed(tmp_path: Path) -> None:
    _, second = new_run(tmp_path)[0], new_run(tmp_path)[0]
    found = Store(tmp_path).resumable(str(second.manifest.plan_hash))
    assert found is not None
    assert found.id == second.id


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is damaged: it is no JSON"),
        (b'{"version": 1, "id": "x', "is damaged: it is no JSON"),
        (b"\xff\xfe", "is damaged: it is no JSON"),
        (b"[]", "is no manifest"),
        (b"{}", "is no manifest"),
        (None, "is missing"),
    ],
)
def test_a_damaged_manifest_is_one_sentence_and_harms_no_other_run(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    good, bad = new_run(tmp_path)[0], new_run(tmp_path)[0]
    path = bad.path / "manifest.json"
    path.unlink() if content is None else path.write_bytes(content)
    store = Store(tmp_path)
    with pytest.warns(UnreadableRun) as warned:
        assert [run.id for run in store.runs()] == [good.id]
    (sentence,) = store.damaged()
    assert [str(each.message) for each in warned] == [sentence]
    assert words in sentence
    with pytest.raises(StoreError, match=words) as caught:
        store.open(bad.id)
    assert str(path) in str(caught.value)
    with pytest.warns(UnreadableRun):
        assert store.resumable(str(good.manifest.plan_hash)) is not None


def test_a_manifest_of_another_format_version_is_refused_by_its_version(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path)
    path = run.path / "manifest.json"
    # The next version may have other keys.
    path.write_text(json.dumps({"version": 3, "nephoscope": "0.9.0", "identity": run.id}))
    with pytest.raises(StoreError) as refused:
        Store(tmp_path).open(run.id)
    assert str(refused.value) == (
        f"{path} has format version 3, written by nephoscope 0.9.0; this program reads versions "
        "up to 2. Install that version or a newer one."
    )
    assert Store(tmp_path).damaged() == [str(refused.value)]
    with pytest.warns(UnreadableRun):
        assert Store(tmp_path).runs() == []


def test_the_default_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NEPHOSCOPE_STORE", "/a/store")
    assert default_path() == Path("/a/store")
    monkeypatch.delenv("NEPHOSCOPE_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_path() == tmp_path / "nephoscope"
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert default_path() == Path("/home/someone/.local/share/nephoscope")


@pytest.mark.parametrize("pid", [None, "x", -1, 2**64, [1]])
def test_a_process_that_cannot_be_is_nobody(tmp_path: Path, pid: object) -> None:
    run, _ = new_run(tmp_path)
    run.event({"event": "session_started", "pid": pid})
    with run.lock():
        holder = Store(tmp_path).open(run.id).holder()
    assert holder is not None
    assert (holder.pid, holder.here) == (0, False)


def test_two_processes_cannot_measure_one_run(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path)
    run.event({"event": "session_started", "pid": 4242})
    script = (
        "import sys\n"
        "from nephoscope.store import Store\n"
        "with Store(sys.argv[1]).open('latest').lock():\n"
        "    print('locked', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=dict(os.environ),
    )
    assert other.stdout is not None
    assert other.stdin is not None
    try:
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(StoreError, match="being measured by process 4242"), run.lock():
            pass
    finally:
        # SIGKILL: no lock may outlive its process.
        other.kill()
        other.wait()
        other.stdin.close()
        other.stdout.close()
    with run.lock():
        pass


@contextlib.contextmanager
def a_child_has_the_lock(run: StoredRun, seconds: str) -> Iterator[None]:
    """As between the fork and the exec of a process that was killed meanwhile."""
    descriptor = os.open(run.journal_path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    child = subprocess.Popen(["sleep", seconds], pass_fds=[descriptor])
    os.close(descriptor)
    try:
        yield
    finally:
        child.kill()
        child.wait()


def test_the_lock_of_a_killed_process_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = new_run(tmp_path)
    run.event({"event": "session_started", "pid": 2**22 - 1, "started_ticks": 1, "boot_id": "old"})
    monkeypatch.setattr("nephoscope.store.holder._RELEASE_S", 30.0)
    with a_child_has_the_lock(run, "0.2"), run.lock():
        pass
    monkeypatch.setattr("nephoscope.store.holder._RELEASE_S", 0.05)
    with (
        a_child_has_the_lock(run, "30"),
        pytest.raises(StoreError, match="being measured by process 4194303"),
        run.lock(),
    ):
        pass


def test_the_journal_survives_a_torn_line(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path)
    run.event({"event": "one"})
    with (run.path / "journal.jsonl").open("ab") as stream:
        stream.write(b'{"event": "to')
    run.event({"event": "two"})
    assert [event["event"] for event in run.events()] == ["one", "two"]
    assert all("at" in event for event in run.events())


def test_a_killed_writers_leftovers_are_removed(tmp_path: Path) -> None:
    run, settings = new_run(tmp_path)
    # No process has this number: it is above the kernel's limit.
    left = run.trials_path / ".r0001-s000-local.parquet.4194400.part"
    left.write_bytes(b"half")
    mine = run.trials_path / f".r0001-s001-local.parquet.{os.getppid()}.part"
    mine.write_bytes(b"being written by a process that lives")
    aside = run.path.parent / ".20260101-000000-x-0000.4194400.new"
    aside.mkdir()
    with run.lock():
        assert not left.exists()
        assert mine.exists()
    assert run.records() == []
    new_run(tmp_path)
    assert not aside.exists()
    run.append(record(settings[0], 1, 0), samples(1.0), SPEC)
    assert len(run.records()) == 1


def test_a_run_of_a_lower_layer_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """overlayfs answers EXDEV to the renaming of a folder that an image has."""
    run, _ = new_run(tmp_path)
    refusal = OSError(errno.EXDEV, os.strerror(errno.EXDEV))
    monkeypatch.setattr(Path, "rename", lambda *_: (_ for _ in ()).throw(refusal))
    Store(run.path.parent.parent).remove(run)
    assert [path.name for path in run.path.parent.iterdir() if path.is_dir()] == []


def test_a_run_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path / "other")
    store = Store(tmp_path / "own")
    with pytest.raises(RuntimeError), store.new("name", dict(run.manifest.stored)):
        raise RuntimeError
    assert list(store.runs_path.iterdir()) == []


def test_specs_are_those_of_the_run_not_of_today(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path)
    manifest = json.loads((run.path / "manifest.json").read_text())
    manifest["specs"][0]["metrics"][0]["unit"] = "bytes"
    del manifest["sha256"]
    (run.path / "manifest.json").write_text(json.dumps(manifest))
    assert Store(tmp_path).open(run.id).spec("null").metric("null_ns").unit == "bytes"
    assert CATALOG.benchmark("null").metric("null_ns").unit == "ns"


def test_a_lock_that_another_one_has_for_a_moment_is_waited_for(tmp_path: Path) -> None:
    """Also by the process that measured the run, which its journal names."""
    run, _ = new_run(tmp_path)
    run.event({"event": "session_started", **identity()})
    held, free = threading.Event(), threading.Event()

    def hold() -> None:
        with Store(tmp_path).open(run.id).hold():
            held.set()
            free.wait(120)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(120)
    threading.Timer(0.1, free.set).start()
    with run.hold():
        assert free.is_set()
    thread.join()
