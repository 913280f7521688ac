"""Disks that are full, read-only or not ours: one sentence, and what was measured is kept."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from tests import file_systems

from nephoscope.core.errors import StoreError, UnknownName
from nephoscope.core.model import Sample, TrialStatus
from nephoscope.store import Store, query
from nephoscope.store.trialfile import DAMAGED, key_of

from .factory import SPEC, filled, new_run, record, samples


@pytest.fixture
def small_disk(tmp_path: Path, root_only: None) -> Iterator[Path]:
    """A file system of 1 MiB."""
    with file_systems.in_memory(tmp_path / "small", "size=1m") as path:
        yield path


def test_a_full_disk_keeps_what_was_measured(small_disk: Path) -> None:
    run, settings = new_run(small_disk)
    run.append(record(settings[0], 1, 0), samples(1.0), SPEC)
    (small_disk / "filler").write_bytes(bytes(800 << 10))
    large = [Sample("null_ns", 1.0 / (n + 1), 1, n) for n in range(60_000)]
    with pytest.raises(StoreError, match="the disk is full") as caught:
        run.append(record(settings[1], 1, 1), large, SPEC)
    assert "run the same command again" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [r.key.setting for r in run.records()] == [0]
    assert [path.name for path in run.trials_path.iterdir()] == ["r0001-s000-local.parquet"]
    (small_disk / "filler").unlink()
    run.append(record(settings[1], 1, 1), samples(2.0), SPEC)
    assert len(run.records()) == 2


def test_a_read_only_disk_is_told(small_disk: Path) -> None:
    run, settings = new_run(small_disk)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StoreError, match="the file system is read-only"):
        run.append(record(settings[0], 1, 0), samples(1.0), SPEC)
    with pytest.raises(StoreError, match="the file system is read-only"):
        run.update(state="finished")
    with pytest.raises(StoreError, match="the file system is read-only"):
        run.event({"event": "x"})
    with pytest.raises(StoreError, match="the file system is read-only"):
        new_run(small_disk / "deeper")
    assert run.state == "running"


@pytest.mark.parametrize(
    ("number", "words"),
    [(13, "permission is denied"), (28, "the disk is full"), (5, "input/output")],
)
def test_every_write_tells_its_failure(tmp_path: Path, number: int, words: str) -> None:
    """By an injected failure, since root may write everywhere."""
    run, settings = new_run(tmp_path)
    error = OSError(number, os.strerror(number))
    with mock.patch("os.fsync", side_effect=error):
        for write in (
            lambda: run.append(record(settings[0], 1, 0), samples(1.0), SPEC),
            lambda: run.update(state="finished"),
            lambda: new_run(tmp_path),
        ):
            with pytest.raises(StoreError, match=words) as caught:
                write()
            assert "\n" not in str(caught.value)
    assert run.records() == []
    assert list(run.trials_path.iterdir()) == []
    assert len(Store(tmp_path).ids()) == 1
    assert Store(tmp_path).open(run.id).state == "running"


def test_a_store_path_that_is_a_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("x")
    with pytest.raises(StoreError, match="cannot be created"):
        new_run(path)
    with pytest.raises((StoreError, UnknownName)):
        Store(path).open("latest")


def truncate(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flip(content: bytes) -> bytes:
    # In the first page: only its checksum can tell.
    return content[:60] + bytes([content[60] ^ 0xFF]) + content[61:]


DAMAGES = {
    "truncated": truncate,
    "a flipped bit": flip,
    "empty": lambda _: b"",
    "foreign": lambda _: b"PAR1 this is something else PAR1",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_trial_is_invalid_and_the_others_stay(tmp_path: Path, damage: object) -> None:
    run, _ = filled(tmp_path)
    path = run.trials_path / "r0002-s001-local.parquet"
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    records = run.records()
    assert len(records) == 8
    bad = records[0]
    assert (bad.status, bad.failure_name, bad.position) == (TrialStatus.INVALID, DAMAGED, -1)
    assert (bad.key.name, bad.benchmark, bad.factors) == (
        "r0002-s001-local",
        "null",
        {"value": 2.0},
    )
    assert str(path) in bad.reasons[0]
    assert all(r.status is TrialStatus.VALID for r in records[1:])
    trials = {row.trial for row in query.trial_medians(run)}
    assert len(trials) == 5
    assert path.stem not in trials


def test_what_changes_after_a_look_is_looked_at_again(tmp_path: Path) -> None:
    run, _ = filled(tmp_path)
    assert len(run.records()) == len(list(run.tables())) == 8
    path = run.trials_path / "r0002-s001-local.parquet"
    whole = path.read_bytes()
    path.write_bytes(flip(whole))
    assert [r.key.name for r in run.records() if r.failure_name == DAMAGED] == [path.stem]
    assert path.stem not in {row.trial for row in query.trial_medians(run)}
    path.write_bytes(whole)
    assert not [r for r in run.records() if r.failure_name == DAMAGED]
    path.unlink()
    assert [r.key.name for r in run.records() if r.failure_name == DAMAGED] == [path.stem]
    assert len(list(run.tables())) == 7


def test_a_foreign_parquet_file_is_no_trial(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    run, _ = filled(tmp_path, rounds=1)
    pq.write_table(pa.table({"x": [1]}), run.trials_path / "r0009-s000-local.parquet")
    one, other = (run.trials_path / f"r000{n}-s000-local.parquet" for n in (1, 8))
    other.write_bytes(one.read_bytes())
    (run.trials_path / "notes.parquet").write_bytes(b"x")
    (run.trials_path / "r0001-s999-local.parquet").write_bytes(b"x")
    damaged = [r.key.round for r in run.records() if r.failure_name == DAMAGED]
    assert sorted(damaged) == [8, 9]


def test_names_of_trials_are_read_back() -> None:
    for name in ("r0001-s000-local", "w0000-s012-a-b", "r12345-s1000-x_1"):
        key = key_of(name)
        assert key is not None
        assert key.name == name
    assert key_of("r1-s0-x") is None
