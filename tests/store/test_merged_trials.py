"""The trials of a run that ended lie in two files, and nobody who reads them sees a difference."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.results.made import TWO_TARGETS, make_run

from nephoscope.core.errors import StoreError
from nephoscope.core.model import Sample, Setting, TrialStatus
from nephoscope.report import report_files
from nephoscope.results import analyse_run
from nephoscope.store import Store, StoredRun, merged_trials, merging, query
from nephoscope.store.digests import with_own_digest
from nephoscope.store.export import FORMATS
from nephoscope.store.trialfile import SCHEMA, column_lists

from .factory import SPEC, exported, filled, new_run, record, samples


def names_of(run: StoredRun) -> set[str]:
    return {path.name for path in run.trials_path.iterdir()}


def content(run: StoredRun) -> Any:
    """All that readers see of a run."""
    rows = [(one, table.to_pylist()) for one, table in run.tables()]
    queries = (query.trial_medians(run), query.histograms(run), query.series(run))
    return run.records(), rows, queries, [exported([run], format) for format in FORMATS]


def both_ways(store: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[StoredRun, StoredRun]:
    """The only run of a store, ended without merging its trials, and with it."""
    (run,) = Store(store).runs()
    run.update(finished_at=5.0)
    shutil.copytree(store, store.with_name("apart"))
    (apart,) = Store(store.with_name("apart")).runs()
    with monkeypatch.context() as patch:
        patch.setattr(merging, "merge_ended", lambda *_: {})
        apart.finish("measured")
    run.finish("measured")
    assert names_of(run) == {"samples.parquet", "records.jsonl"}
    assert all(name.startswith(("r", "w")) for name in names_of(apart))
    return Store(store.with_name("apart")).open(run.id), Store(store).open(run.id)


def test_the_rows_are_those_of_single_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, settings = filled(tmp_path / "store", rounds=9)
    failed = {"status": TrialStatus.FAILED, "reasons": ("No.",), "failure_name": "no"}
    run.append(record(settings[0], 10, 20, **failed), [], SPEC)
    run.append(record(settings[1], 10, 21), samples(7.0), SPEC)
    apart, together = both_ways(tmp_path / "store", monkeypatch)
    assert content(together) == content(apart)
    assert together.integrity() == apart.integrity()
    assert together.trial_count() == apart.trial_count() == 22
    assert together.trial_count(with_warmup=False) == 20


Shapes = st.lists(st.integers(0, 5), min_size=1, max_size=12)


@given(rows=Shapes, chunk=st.integers(1, 12), groups=st.integers(1, 4))
def test_any_sizes_of_trials_groups_and_chunks_give_the_same_rows(
    rows: list[int], chunk: int, groups: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("sizes")
    run, settings = new_run(folder)
    trials = [
        (record(settings[0], number, number), [Sample("null_ns", float(n)) for n in range(size)])
        for number, size in enumerate(rows, start=1)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merged_trials, "CHUNK_ROWS", chunk)
        patch.setattr(merged_trials, "GROUPS", groups)
        patch.setattr(merged_trials, "GROUP_TRIALS", 1)
        run.store_all([(one, own, SPEC, ()) for one, own in trials])
        stored = [(one, table.to_pylist()) for one, table in Store(folder).open(run.id).tables()]
        batches = list(Store(folder).open(run.id).batches(SCHEMA.names))
    assert [one for one, _ in stored] == [one for one, _ in trials]
    assert [[row["value"] for row in own] for _, own in stored] == [
        [sample.value for sample in own] for _, own in trials
    ]
    assert [rows for batch in batches for _, rows in batch.trials] == rows
    values = [value for batch in batches for value in column_lists(batch.table, ["value"])[0]]
    assert values == [sample.value for _, own in trials for sample in own]


def test_the_result_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sampler(setting: Setting, number: int, target: str) -> list[Sample]:
        base = 100.0 + number + setting.index + len(target)
        latencies = [Sample("null_latency_ns", base + n, 5 + n, n) for n in range(4)]
        return [Sample("null_ns", base), Sample("null_per_s", 1 / base), *latencies]

    store = tmp_path / "store"
    run = make_run(store, TWO_TARGETS, sampler, invalid=[3], state="running", one_by_one=True)
    apart, together = both_ways(store, monkeypatch)

    def document(stored: StoredRun) -> str:
        result = report_files.document(analyse_run.build(stored))
        return json.dumps(result).replace(str(stored.path.parents[1]), "STORE")

    assert run.id == together.id
    assert document(together) == document(apart)


def damage(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def ended(path: Path) -> StoredRun:
    run, _ = filled(path, rounds=9)
    run.finish("measured")
    return run


def test_a_damaged_byte_costs_the_trials_of_its_group(tmp_path: Path) -> None:
    run = ended(tmp_path)
    path, _ = merged_trials.paths(run.trials_path)
    group = pq.read_metadata(path).row_group(2).column(0)
    damage(path, group.data_page_offset + 40)
    again = Store(tmp_path).open(run.id)
    damaged = [one for one in again.records() if one.failure_name == "file_damaged"]
    lost = {f"r{number:04d}-s00{index}-local" for number in (4, 5) for index in (0, 1)}
    assert {one.key.name for one in damaged} == lost
    assert {row.trial for row in query.trial_medians(again)}.isdisjoint(lost)
    assert len(list(again.tables())) == 16
    assert sorted(again.integrity().damaged) == [
        f"{path} is damaged: {name} is not as it was stored" for name in sorted(lost)
    ]
    assert again.integrity().verified == 16


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: damage(path, -20),
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
    ],
)
def test_without_its_footer_no_trial_is_read(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    run = ended(tmp_path)
    path, _ = merged_trials.paths(run.trials_path)
    spoil(path)
    again = Store(tmp_path).open(run.id)
    assert {one.failure_name for one in again.records()} == {"file_damaged"}
    assert len(again.integrity().damaged) == 20
    assert list(again.tables()) == []


def test_a_damaged_record_costs_its_trial(tmp_path: Path) -> None:
    run = ended(tmp_path)
    _, path = merged_trials.paths(run.trials_path)
    first = path.read_bytes().index(b"\n")
    damage(path, first + 30)
    again = Store(tmp_path).open(run.id)
    assert again.integrity().verified == 19
    sentences = again.integrity().damaged
    assert f"{path} is damaged: w0000-s001-local is not as it was stored" in sentences
    assert f"{path} is damaged: its content is not what was stored." in sentences
    path.unlink()
    assert f"{path} cannot be read" in str(Store(tmp_path).open(run.id).integrity().damaged)


def test_a_damaged_trial_is_measured_again_beside_the_merged_ones(tmp_path: Path) -> None:
    run, settings = filled(tmp_path, rounds=9)
    run.finish("measured")
    path, _ = merged_trials.paths(run.trials_path)
    damage(path, pq.read_metadata(path).row_group(2).column(0).data_page_offset + 40)
    again = Store(tmp_path).open(run.id)
    with again.lock():
        again.append(record(settings[0], 4, 30), samples(3.0), SPEC)
    resumed = Store(tmp_path).open(run.id)
    assert resumed.trial_count() == 20
    assert resumed.integrity().verified == 17
    assert resumed.records()[-1].position == 30
    assert [one.position for one, _ in resumed.tables()][-1] == 30


def test_who_reads_while_the_run_ends_sees_every_trial_once(tmp_path: Path) -> None:
    run, _ = filled(tmp_path, rounds=9)
    before, during = (Store(tmp_path).open(run.id) for _ in range(2))
    expected = [one for one, _ in run.tables()]
    assert before.state == "running"
    tables = during.tables()
    first = [next(tables)[0] for _ in range(3)]
    run.finish("measured")
    assert [*first, *(one for one, _ in tables)] == expected
    assert before.records() == expected
    assert before.trial("r0003-s001-local")[0].key.name == "r0003-s001-local"
    with pytest.raises(StoreError):
        before.trial("r0099-s001-local")


def test_runs_of_earlier_versions_keep_their_files(tmp_path: Path) -> None:
    run, _ = filled(tmp_path, rounds=1)
    manifest = {key: value for key, value in run.manifest.stored.items() if key != "version"}
    (run.path / "manifest.json").write_bytes(with_own_digest({"version": 1, **manifest}))
    before = names_of(run)
    earlier = Store(tmp_path).open(run.id)
    earlier.finish("measured")
    assert names_of(earlier) == before
    assert earlier.manifest.version == 1


def test_a_run_with_a_damaged_trial_keeps_its_files(tmp_path: Path) -> None:
    run, _ = filled(tmp_path, rounds=1)
    damage(run.trials_path / "r0001-s000-local.parquet", 30)
    run.finish("measured")
    assert len(names_of(run)) == 4
    assert Store(tmp_path).open(run.id).integrity().verified == 3


def test_files_that_a_kill_left_do_not_count_twice_and_are_removed(tmp_path: Path) -> None:
    run, _ = filled(tmp_path / "store", rounds=1)
    shutil.copytree(run.trials_path, tmp_path / "left")
    run.finish("measured")
    shutil.copytree(tmp_path / "left", run.trials_path, dirs_exist_ok=True)
    again = Store(tmp_path / "store").open(run.id)
    assert (again.trial_count(), len(again.records())) == (4, 4)
    assert again.integrity().verified == 4
    with again.lock():
        pass
    assert names_of(again) == {"samples.parquet", "records.jsonl"}


def test_any_parquet_reader_reads_the_samples(tmp_path: Path) -> None:
    run = ended(tmp_path)
    path, _ = merged_trials.paths(run.trials_path)
    table = pq.read_table(path, partitioning=None)
    assert table.schema.names == SCHEMA.names
    assert table.num_rows == 20 * len(samples(1.0))


@pytest.mark.slow
def test_an_export_of_many_trials_opens_few_files_and_holds_few_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, settings = new_run(tmp_path)
    trials = [
        (record(settings[n % 2], n // 2 + 1, n), [Sample("null_ns", float(v)) for v in range(50)])
        for n in range(3000)
    ]
    run.store_all([(one, own, SPEC, ()) for one, own in trials])
    opened = []
    real = pq.ParquetFile
    monkeypatch.setattr(pq, "ParquetFile", lambda *a, **k: opened.append(a) or real(*a, **k))
    stored = Store(tmp_path).open(run.id)
    batches = [batch.table.num_rows for batch in stored.batches(SCHEMA.names)]
    assert sum(batches) == 150_000
    assert max(batches) <= merged_trials.CHUNK_ROWS
    assert len(opened) == len(batches) == 3
    assert exported([stored], "csv").count(b"\n") == 150_001
    assert len(opened) == 9
