"""Stores of several controllers in one: whole runs, once each, and conflicts by name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.results.made import NULL_PLAN, make_run
from tests.store.objects.conftest import Machine, machine, s3, service
from tests.store.test_kills import killed_at

from nephoscope import command_line
from nephoscope.core.model import Sample, Setting
from nephoscope.results import analyse_run
from nephoscope.store import Store, StoredRun
from nephoscope.store.store_merge import MergedSource, StoreMerge, content_digest

__all__ = ["machine", "s3", "service"]


def noisy(setting: Setting, number: int, target: str) -> Sequence[Sample]:
    return [Sample("null_ns", 100.0 + number)]


def a_run(store: Path, **more: object) -> StoredRun:
    return make_run(store, NULL_PLAN, noisy, rounds=2, **more)  # type: ignore[arg-type]


def merged(target: Path, *sources: Path, leaves_out: bool = False) -> list[MergedSource]:
    merge = StoreMerge(Store(target), [Store(path) for path in sources], leaves_out=leaves_out)
    assert merge.conflicts == []
    return merge.apply()


@pytest.fixture
def stores(tmp_path: Path) -> tuple[Path, Path]:
    """Two stores with two runs each, one of which is the same run."""
    a, b = tmp_path / "a", tmp_path / "b"
    for store in (a, b):
        a_run(store)
    shared = a_run(a)
    shutil.copytree(shared.path, b / "runs" / shared.id)
    return a, b


def test_runs_are_copied_whole_with_their_provenance(
    stores: tuple[Path, Path], tmp_path: Path
) -> None:
    target = tmp_path / "all"
    first, second = merged(target, *stores)
    assert [len(first.copied), len(first.present)] == [2, 0]
    assert [len(second.copied), len(second.present)] == [1, 1]
    assert first.left_out == second.left_out == ()
    for store in map(Store, stores):
        for source in store.runs():
            copy = Store(target).open(source.id)
            result = analyse_run.build(copy)
            assert result.metrics == analyse_run.build(source).metrics
            assert [*result.run.merged_from] == [
                str(stores[0] if source.id in first.copied else store.path)
            ]
            assert copy.integrity().damaged == ()
            assert copy.integrity().verified == source.integrity().verified > 0
            (origin,) = copy.manifest.merged_from
            assert origin["sha256"] == content_digest(source) == content_digest(copy)
            assert origin["store"] in map(str, stores)


def test_twice_is_once_and_labels_are_no_other_content(
    stores: tuple[Path, Path], tmp_path: Path
) -> None:
    target = tmp_path / "all"
    merged(target, *stores)
    before = {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}
    (run, *_) = Store(stores[0]).runs()
    run.update(labels={"ticket": "OPS-1"})
    again = merged(target, *stores)
    assert [source.copied for source in again] == [(), ()]
    assert sum(len(source.present) for source in again) == 4
    assert before == {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}
    # Back where the runs came from, nothing is new either.
    (back,) = merged(stores[0], target)
    assert len(back.copied) == 1
    assert len(back.present) == 2


def test_a_kill_leaves_no_half_run(
    stores: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with killed_at(10**9, monkeypatch) as counted:
        merged(tmp_path / "whole", *stores)
    operations = counted[0]
    assert operations > 20
    for moment in range(0, operations, max(1, operations // 12)):
        target = tmp_path / f"killed-{moment}"
        with killed_at(moment, monkeypatch):
            merged(target, *stores)
        for run in Store(target).runs():
            assert run.integrity().damaged == ()
            assert content_digest(run) == run.manifest.merged_from[0]["sha256"]
        results = merged(target, *stores)
        assert len(Store(target).ids()) == 3, moment
        assert sum(len(source.copied) + len(source.present) for source in results) == 4
        assert not list((target / "runs").glob(".*.new")), moment


def test_conflicts_are_refused_by_name_and_nothing_is_copied(
    stores: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = stores
    other = Store(b).runs()[-1] if Store(b).runs()[-1].id in Store(a).ids() else Store(b).runs()[0]
    other.update(seed=8)
    arguments = ["merge", str(a), str(b), "--store", str(tmp_path / "all")]
    assert command_line.main(arguments) == 2
    refused = " ".join(capsys.readouterr().err.split())
    assert f"Run {other.id} is in {b} and in {a} with other content (seed)" in refused
    assert Store(tmp_path / "all").ids() == []
    assert command_line.main([*arguments, "--leave-out"]) == 1
    shown = capsys.readouterr().out
    assert "2 runs copied" in shown
    assert f"Run {other.id}" in shown
    assert len(Store(tmp_path / "all").ids()) == 3


def test_a_metric_in_two_units_and_a_watch_of_two_definitions_are_conflicts(
    tmp_path: Path,
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a_run(a)
    run = a_run(b)
    specs = json.loads(json.dumps(run.manifest.specs))
    next(metric for metric in specs[0]["metrics"] if metric["id"] == "null_ns")["unit"] = "ms"
    run.update(specs=specs)
    for store, interval in ((a, 60), (b, 3600)):
        (store / "watches" / "night").mkdir(parents=True)
        watch = {"plan": {"name": "x"}, "interval_s": interval}
        (store / "watches" / "night" / "watch.json").write_text(json.dumps(watch))
    merge = StoreMerge(Store(tmp_path / "all"), [Store(a), Store(b)], leaves_out=False)
    watch, unit = merge.conflicts
    assert "The watch 'night'" in watch
    assert "(interval_s)" in watch
    assert f"Run {run.id} in {b} has null_ns of null in ms" in unit


def test_damaged_and_unfinished_runs_are_left_out_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "a"
    good, damaged, running = a_run(store), a_run(store), a_run(store, state="running")
    samples = damaged.trials_path / "samples.parquet"
    content = bytearray(samples.read_bytes())
    content[len(content) // 2] ^= 1
    samples.write_bytes(content)
    target = tmp_path / "all"
    assert command_line.main(["merge", str(store), "--store", str(target)]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "1 run copied, 0 already there, 2 left out" in shown
    assert f"Run {damaged.id} is damaged in {store}" in shown
    assert f"Run {running.id} has not ended" in shown
    assert Store(target).ids() == [good.id]


def test_runs_of_different_plans_are_refused_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a_run(a)
    make_run(b, f"{NULL_PLAN}    params: {{value: 5}}\n", noisy, rounds=2)
    arguments = ["merge", str(a), str(b), "--store", str(tmp_path / "all"), "--dry-run"]
    assert command_line.main(arguments) == 0
    assert "1 run would be copied" in capsys.readouterr().out
    assert command_line.main([*arguments, "--same-plan"]) == 2
    assert "(benchmarks[1].params.value)" in capsys.readouterr().err
    assert not (tmp_path / "all" / "runs").exists() or not Store(tmp_path / "all").ids()


def test_a_store_on_object_storage_is_a_source_and_a_target(
    machine: Machine, tmp_path: Path
) -> None:
    local = tmp_path / "local"
    run = a_run(local)
    there = machine("one")
    merge = StoreMerge(there, [Store(local)], leaves_out=False)
    assert [source.copied for source in merge.apply()] == [(run.id,)]
    elsewhere = machine("two")
    (result,) = merged_from(elsewhere, tmp_path / "all")
    assert result.copied == (run.id,)
    assert result.store == "s3://lab/runs"
    copy = Store(tmp_path / "all").open(run.id)
    assert content_digest(copy) == content_digest(run)
    assert [origin["store"] for origin in copy.manifest.merged_from] == [
        str(local),
        "s3://lab/runs",
    ]
    assert copy.integrity().damaged == ()


def merged_from(source: Store, target: Path) -> list[MergedSource]:
    return StoreMerge(Store(target), [source], leaves_out=False).apply()
