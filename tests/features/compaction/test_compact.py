"""Old runs become lines of day files: nothing is lost, doubled or changed, whatever happens."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from tests import file_systems
from tests.features.compaction.made import (
    METRICS,
    NOW_S,
    drawn_run,
    every_history,
    every_summary,
    history,
    trials_of,
)
from tests.features.history.drawn import DAY_S, START_S
from tests.results.made import NULL_PLAN
from tests.store.test_kills import killed_at

from nephoscope.core.errors import StoreError, UnknownName
from nephoscope.features.compaction.compact import Compaction, Policy, compact
from nephoscope.features.compaction.summarise import summary_of
from nephoscope.features.history.series import read
from nephoscope.stats.statistics import histograms
from nephoscope.store import RUNNING, Store, StoredRun, day_files
from nephoscope.store.index import _read
from nephoscope.store.packing import Histogram
from nephoscope.store.summary import RunSummary

RAW = Policy(keep_raw_s=7 * DAY_S)
DERIVED = ("summary.json", ".index.jsonl")
"""Files that are computed of others, and may be written at any time."""


def compacted(store: Path, policy: Policy = RAW, **options: object) -> Compaction:
    return compact(Store(store), policy, **{"now_s": NOW_S, **options})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one day, one of the next, one of today."""
    store = tmp_path_factory.mktemp("drawn")
    for seed, at_s in enumerate((START_S, START_S + 60, START_S + DAY_S, NOW_S - 60)):
        drawn_run(store, at_s, seed=seed)
    return store


@pytest.fixture
def store(drawn: Path, tmp_path: Path) -> Path:
    return shutil.copytree(drawn, tmp_path / "store")


def runs_of(store: Path) -> list[StoredRun]:
    """Runs in the order of their start; ids of one second have none."""
    return sorted(Store(store).runs(), key=lambda run: float(run.manifest.started_at))


def latencies_of(store: Path) -> list[Histogram]:
    """The histograms of all trials in the order of their runs' start."""
    runs = sorted(every_summary(store), key=lambda one: one.started_s)
    return [
        trial
        for one in runs
        for metric in one.metrics
        if metric.metric == "null_latency_ns"
        for trial in metric.histograms()
    ]


def days_of(store: Path) -> list[tuple[str, int]]:
    """Days and their numbers of runs."""
    return [
        (file.day, len(list(day_files.read(file.path, [])))) for file in day_files.day_files(store)
    ]


def test_history_is_the_same_before_and_after(store: Path) -> None:
    before = every_history(store)
    newest = runs_of(store)[-1].id
    done = compacted(store)
    assert len(done.compacted) == 3
    assert Store(store).ids() == [newest]
    assert days_of(store) == [("2026-09-21", 2), ("2026-09-22", 1)]
    assert done.day_bytes == sum(file.size_bytes for file in day_files.day_files(store))
    assert every_history(store) == before
    assert compacted(store).compacted == ()
    assert days_of(store) == [("2026-09-21", 2), ("2026-09-22", 1)]


def test_long_histograms_keep_three_digits(store: Path) -> None:
    before = {metric: history(store, metric)[0].points for metric in METRICS}
    with mock.patch("nephoscope.store.packing.MAX_BUCKETS", 10):
        compacted(store)
    for metric, points in before.items():
        after = history(store, metric, confidence=0.9)[0].points
        for old, new in zip(points, after, strict=True):
            assert new.estimate.value == pytest.approx(old.estimate.value, rel=0.0005)


def test_a_kill_at_any_operation_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, store = tmp_path / "drawn", tmp_path / "store"
    for seed in (0, 1):
        drawn_run(drawn, START_S + seed * DAY_S, seed=seed, rounds=1)
    before = history(drawn, "null_ns")
    assert len(before[0].points) == 2
    for operation in range(1000):
        shutil.copytree(drawn, store)
        with killed_at(operation, monkeypatch) as count:
            compacted(store)
        assert history(store, "null_ns") == before, operation
        compacted(store)
        assert history(store, "null_ns") == before, operation
        assert days_of(store) == [("2026-09-21", 1), ("2026-09-22", 1)], operation
        left = [path for path in store.rglob(".*") if path.name not in DERIVED]
        assert not left, operation
        shutil.rmtree(store)
        if count[0] < operation:
            break
    assert 10 < operation < 200


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
def test_a_half_written_line_is_left_out_and_its_run_counts(store: Path, share: float) -> None:
    """As a kill during the write leaves it: the folder is removed only after the line is synced."""
    before = every_history(store)
    copy = shutil.copytree(store, store.with_name("copy"))
    compacted(store)
    second = runs_of(copy)[1]
    (file, *_) = day_files.day_files(store)
    first, line = file.path.read_bytes().splitlines(keepends=True)
    file.path.write_bytes(first + line[: int(share * len(line))])
    shutil.copytree(second.path, store / "runs" / second.id)
    summaries = every_summary(store)
    assert len(list(summaries)) == 4
    assert summaries.problems == (
        [f"{file.path}: the last line is incomplete and left out."] if share else []
    )
    assert every_history(store) == before
    compacted(store)
    assert file.path.read_bytes() == first + line
    assert every_history(store) == before


def test_an_edited_line_is_left_out_and_named(store: Path) -> None:
    compacted(store)
    (file, *_) = day_files.day_files(store)
    content = file.path.read_bytes()
    file.path.write_bytes(content.replace(b'"trials": 9', b'"trials": 8', 1))
    summaries = every_summary(store)
    series, _ = read(summaries, "null_ns")
    assert len(series[0].points) == 3
    assert summaries.problems == [f"{file.path}: line 1 is damaged and left out."]


def test_a_run_that_changed_after_a_kill_replaces_its_line(store: Path) -> None:
    copy = shutil.copytree(store, store.with_name("copy"))
    compacted(store)
    run = runs_of(copy)[0]
    run.update(labels={"ticket": "1"})
    shutil.copytree(run.path, store / "runs" / run.id)
    compacted(store)
    assert days_of(store)[0] == ("2026-09-21", 2)
    labels = [one.labels for one in every_summary(store)]
    assert labels.count({"ticket": "1"}) == 1


def test_runs_of_the_same_moment_are_two_points(tmp_path: Path) -> None:
    """As after a clock that was set back."""
    for seed in (1, 2):
        drawn_run(tmp_path, START_S, seed=seed)
    before = every_history(tmp_path)
    compacted(tmp_path)
    assert every_history(tmp_path) == before
    assert len(history(tmp_path)[0].points) == 2


def test_runs_of_the_future_keep_their_trials(tmp_path: Path) -> None:
    drawn_run(tmp_path, START_S)
    assert compacted(tmp_path, now_s=START_S - 30 * DAY_S).compacted == ()


def test_a_renamed_target_continues_its_series(tmp_path: Path) -> None:
    plan = NULL_PLAN + "targets: [{name: NAME, kind: local}]\n"
    for seed, name in enumerate(("old", "new")):
        drawn_run(tmp_path, START_S + seed * DAY_S, seed=seed, plan=plan.replace("NAME", name))
    compacted(tmp_path)
    (series,) = history(tmp_path)
    assert [point.target for point in series.points] == ["old", "new"]


@pytest.mark.parametrize("operation", [0, 1, 2])
def test_a_full_disk_keeps_the_trials(store: Path, operation: int) -> None:
    before = every_history(store)
    real, done = os.fsync, [0]

    def fsync(descriptor: int) -> None:
        done[0] += 1
        if done[0] > operation:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    with mock.patch("os.fsync", fsync), pytest.raises(StoreError, match="the disk is full") as full:
        compacted(store)
    assert "\n" not in str(full.value)
    assert every_history(store) == before
    compacted(store)
    assert every_history(store) == before


def test_a_full_disk_leaves_the_day_file_as_it_was(root_only: None, tmp_path: Path) -> None:
    with file_systems.in_memory(tmp_path / "small", "size=1m") as disk:
        drawn_run(disk, START_S)
        compacted(disk)
        (file,) = day_files.day_files(disk)
        before = file.path.read_bytes()
        run = drawn_run(disk, START_S + 60, seed=2)
        filler = disk / "filler"
        with filler.open("wb", buffering=0) as stream, contextlib.suppress(OSError):
            while stream.write(bytes(4096)):
                pass
        line = replace(summary_of(run), plan=f"{random.Random(1).randbytes(9000).hex()}")
        with pytest.raises(StoreError, match="the disk is full"):
            day_files.DayWriter(disk).put(line)
        assert file.path.read_bytes() == before
        filler.unlink()
        compacted(disk)
        assert [number for _, number in days_of(disk)] == [2]


def test_a_run_that_is_compacted_while_a_history_is_read_is_one_point(store: Path) -> None:
    every = iter(every_summary(store))
    read_before = [next(every), next(every), next(every)]
    compacted(store)
    ids = [one.run for one in (*read_before, *every) if isinstance(one, RunSummary)]
    assert len(ids) == len(set(ids)) == 4


def test_damaged_runs_keep_their_trials(store: Path) -> None:
    run, second, *_ = runs_of(store)
    trials_of(run)[0].write_bytes(b"PAR1")
    (second.path / "manifest.json").write_bytes(b"{")
    done = compacted(store)
    assert len(done.compacted) == 1
    unread, sentence = sorted(done.skipped)
    assert unread.startswith(f"{second.path / 'manifest.json'} is damaged: it is no JSON. ")
    assert sentence.startswith(f"Run {run.id} keeps its trials: ")
    assert "damaged" in sentence
    assert len(Store(store).ids()) == 3


def test_a_run_that_is_measured_keeps_its_trials(store: Path) -> None:
    run = runs_of(store)[0]
    run.update(state=RUNNING)
    with run.lock():
        assert run.id not in compacted(store).compacted
    assert run.id in compacted(store).compacted
    assert next(one for one in every_summary(store) if one.run == run.id).state == "killed"


def test_repetitions_and_their_runs_keep_their_trials(store: Path) -> None:
    first, second, third, newest = runs_of(store)
    newest.update(labels={"repeats": second.id, "repeats-against": third.id})
    assert compacted(store).compacted == (first.id,)


def test_a_compaction_after_another_reads_changed_manifests_only(store: Path) -> None:
    runs = runs_of(store)
    for run in runs:
        os.utime(run.path / "manifest.json", (START_S, START_S))
    with mock.patch("nephoscope.store.index._read", wraps=_read) as reading:

        def read_by_compaction() -> set[str]:
            reading.reset_mock()
            compacted(store, Policy(keep_raw_s=9999 * DAY_S))
            return {call.args[0].id for call in reading.call_args_list}

        assert read_by_compaction() == {run.id for run in runs}
        assert read_by_compaction() == set()
        runs[1].update(labels={"ticket": "1"})
        Store(store).remove(runs[2])
        assert read_by_compaction() == {runs[1].id}
    assert compacted(store).compacted == (runs[0].id, runs[1].id)


def test_two_compactions_at_once_are_refused(store: Path) -> None:
    with day_files.locked(store), pytest.raises(StoreError, match="Another process compacts"):
        compacted(store)


def test_a_watch_compacts_its_own_runs(store: Path) -> None:
    run = drawn_run(store, START_S, labels={"watch": "../a b"})
    assert compacted(store, watch="../a b").compacted == (run.id,)
    (file,) = day_files.day_files(store, "../a b")
    assert file.path == store / "days" / "watch=..%2Fa%20b" / "2026-09-21.jsonl"
    assert file.watch == "../a b"
    compacted(store)
    gone = compacted(store, Policy(keep_s=DAY_S), watch="../a b")
    assert [one.watch for one in gone.removed_days] == ["../a b"]
    assert len(day_files.day_files(store)) == 2


def test_old_days_are_removed_with_an_event(store: Path) -> None:
    compacted(store)
    age = NOW_S - START_S - DAY_S
    done = compacted(store, Policy(keep_s=age))
    assert [(one.day, one.reason) for one in done.removed_days] == [("2026-09-21", "age")]
    (event,) = day_files.events(store)
    assert (event["event"], event["day"], event["reason"]) == ("day_removed", "2026-09-21", "age")
    assert [one.day for one in day_files.day_files(store)] == ["2026-09-22"]


def test_the_oldest_day_goes_first_when_the_files_are_too_large(store: Path) -> None:
    compacted(store)
    sizes = [file.size_bytes for file in day_files.day_files(store)]
    assert compacted(store, Policy(max_size_bytes=sum(sizes))).removed_days == ()
    done = compacted(store, Policy(max_size_bytes=sum(sizes) - 1))
    assert [(one.day, one.reason) for one in done.removed_days] == [("2026-09-21", "size")]
    assert done.day_bytes == sizes[1]


def test_a_dry_run_changes_nothing(store: Path) -> None:
    before = sorted(path for path in store.rglob("*") if path.name not in DERIVED)
    policy = Policy(keep_raw_s=7 * DAY_S, keep_s=DAY_S, max_size_bytes=1)
    done = compacted(store, policy, is_dry_run=True)
    assert len(done.compacted) == 3
    assert done.freed_bytes > 1000
    assert sorted(path for path in store.rglob("*") if path.name not in DERIVED) == before


def test_a_compacted_run_is_named_where_it_is_asked_for(store: Path) -> None:
    run = runs_of(store)[0]
    compacted(store)
    for name in (run.id, run.id[:-1]):
        with pytest.raises(UnknownName, match=f"run {run.id} were compacted into"):
            Store(store).open(name)


def test_windows_merge_the_trials_of_their_runs(store: Path) -> None:
    """Also of runs that are lines of a day file; a day is a window here."""
    first, _, third, newest = runs_of(store)
    by_run = history(store, "null_ns")[0].points
    for _ in range(2):
        (series,) = history(store, "null_latency_p95_ns", window_s=DAY_S)
        assert [point.run for point in series.points] == [first.id, third.id, newest.id]
        assert [point.estimate.n for point in series.points] == [14, 7, 7]
        merged = histograms.merge(latencies_of(store)[:14])
        percentile = histograms.quantile_of_counts(*merged, 0.95)
        assert series.points[0].estimate.value == percentile
        (values,) = history(store, "null_ns", window_s=DAY_S)
        low, high = sorted(point.estimate.value for point in by_run[:2])
        assert low <= values.points[0].estimate.value <= high
        compacted(store)
