"""Repetitions of a run behind a change: their plans, and what they decide."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.features.history.drawn import DAY_S, START_S, append_run
from tests.results.made import make_run

from nephoscope.core.errors import UsageError
from nephoscope.core.model import Sample, Setting
from nephoscope.features.compaction.reading import StoredSummaries
from nephoscope.features.history import confirm
from nephoscope.features.history.confirm import AGAINST, Judge
from nephoscope.features.history.records import ConfirmingRun
from nephoscope.features.history.result import HistorySettings, analyse
from nephoscope.features.history.series import REPETITION, Series, read
from nephoscope.store import Store, StoredRun
from nephoscope.store.selection import Selection

CHANGE = 24
RUNS = 46


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Daily runs whose null_ns rises by a fifth at CHANGE, and whose cpu.pi does not change."""
    store = tmp_path_factory.mktemp("drawn")
    rng = np.random.default_rng(1)
    for day in range(RUNS):
        level = 100 if day < CHANGE else 120
        values = {
            "null_ns": level * (1 + 0.01 * rng.standard_normal()),
            "pi_digits_per_s": 1e6 * (1 + 0.01 * rng.standard_normal()),
        }
        append_run(store, START_S + day * DAY_S, values)
    return store


@pytest.fixture
def store(drawn: Path, tmp_path: Path) -> Path:
    """A copy of the store, to add repetitions to."""
    return shutil.copytree(drawn, tmp_path / "drawn")


def runs_of(store: Path) -> StoredSummaries:
    return StoredSummaries(Store(store), Selection())


def series_of(store: Path) -> Series:
    (series,), _ = read(runs_of(store), "null_ns")
    return series


def behind(store: Path) -> StoredRun:
    """The first run behind the change."""
    return Store(store).open(series_of(store).points[CHANGE].run)


def judged(store: Path) -> tuple[ConfirmingRun, ...]:
    judge = Judge(Store(store), runs_of(store), 0.03, 0.95)
    (change,) = analyse(series_of(store), HistorySettings(), judge).changes
    assert change.status == (change.repetitions[-1].status if change.repetitions else "suspected")
    return change.repetitions


def repeat(store: Path, null_ns: float, pi_digits_per_s: float | None, days_later: int = 1) -> None:
    values = {"null_ns": null_ns}
    values |= {} if pi_digits_per_s is None else {"pi_digits_per_s": pi_digits_per_s}
    labels = {REPETITION: behind(store).id}
    append_run(store, START_S + (RUNS + days_later) * DAY_S, values, rounds=6, labels=labels)


def test_the_reference_is_a_benchmark_of_the_plan_without_a_change(store: Path) -> None:
    run = behind(store)
    reference = confirm.reference_of(run, series_of(store), runs_of(store), 0.95)
    assert reference is not None
    assert (reference.benchmark, reference.metric) == ("cpu.pi", "pi_digits_per_s")
    plan = confirm.repetition_plan(run, series_of(store), reference)
    assert [entry.benchmark for entry in plan.benchmarks] == ["null", "cpu.pi"]
    assert {entry.on for entry in plan.benchmarks} == {("web",)}
    assert plan.repeat.min == confirm.MINIMUM_ROUNDS
    assert plan.repeat.allocation == "even"
    alone = confirm.repetition_plan(run, series_of(store), None)
    assert [entry.benchmark for entry in alone.benchmarks] == ["null"]
    assert plan.seed is None


@pytest.mark.parametrize(
    ("null_ns", "pi", "status", "sentence"),
    [
        (120, 1e6, "confirmed", "is at its level"),
        (100, 1e6, "refuted", "is at its level"),
        (120, 0.7e6, "undecided", "differs from its level"),
        (120, None, "confirmed", "without a reference"),
    ],
)
def test_a_repetition_decides(
    store: Path, null_ns: float, pi: float | None, status: str, sentence: str
) -> None:
    assert judged(store) == ()
    repeat(store, null_ns, pi)
    (repetition,) = judged(store)
    assert repetition.status == status
    assert sentence in repetition.sentence
    assert repetition.shift is not None
    assert repetition.shift.value == pytest.approx(null_ns / 100, rel=0.02)


def test_a_change_right_behind_another_has_no_level_before_it(store: Path) -> None:
    repeat(store, 120, 1e6)
    judge = Judge(Store(store), runs_of(store), 0.03, 0.95)
    series = series_of(store)
    (change,) = analyse(series, HistorySettings()).changes
    for before in (series.points[:0], series.points[:1]):
        (repetition,) = judge(series, before, series.points[CHANGE:], change)
        assert (repetition.status, repetition.shift) == ("undecided", None)


def test_a_repetition_is_no_point_and_the_newest_one_decides(store: Path) -> None:
    repeat(store, 120, 1e6)
    repeat(store, 100, 1e6, days_later=2)
    assert [one.status for one in judged(store)] == ["confirmed", "refuted"]
    assert len(series_of(store).points) == RUNS


def test_a_run_without_a_series_or_plan_is_refused(store: Path) -> None:
    run = behind(store)
    with pytest.raises(UsageError, match="has no plan that can be run again"):
        confirm.repetition_plan(run, replace(series_of(store), points=()), None)
    with pytest.raises(UsageError, match=r"does not list disk\.io"):
        confirm.repetition_plan(run, replace(series_of(store), benchmark="disk.io"), None)


def test_two_settings_are_interleaved(tmp_path: Path) -> None:
    a = append_run(tmp_path, START_S, {"null_ns": 1.0})
    b = append_run(tmp_path, START_S + 1, {"null_ns": 1.0}, parameter=200.0)
    plan = confirm.pair_plan(Store(tmp_path), a.id, b.id)
    assert [target.name for target in plan.targets] == ["web-a", "web-b"]
    with pytest.raises(UsageError, match="cannot tell them apart"):
        confirm.pair_plan(Store(tmp_path), a.id, a.id)
    assert AGAINST != REPETITION


NIGHTLY = """
version: 1
name: nightly
repeat: {min: 10, max: 10}
warmup: 0
targets: [{name: web, kind: local}]
benchmarks: [{benchmark: command, params: {label: app, argv: [VERSION]}}]
"""


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Daily runs of a labelled command, whose new version at CHANGE takes a fifth longer."""
    store = tmp_path_factory.mktemp("versions")
    rng = np.random.default_rng(2)
    for day in range(RUNS):
        version, level = ("old", 100) if day < CHANGE else ("new", 120)
        value = level * (1 + 0.01 * rng.standard_normal())
        plan = NIGHTLY.replace("VERSION", version)
        run = make_run(store, plan, lambda *_, v=value: [Sample("wall_ns", v)], rounds=1)
        run.update(started_at=START_S + day * DAY_S)
    return store


@pytest.mark.parametrize(
    ("old", "new", "noise", "status"),
    [
        (100, 120, 0.01, "confirmed"),
        (100, 100, 0.001, "refuted"),
        (120, 100, 0.01, "refuted"),
        (100, 105, 0.2, "undecided"),
    ],
)
def test_both_versions_interleaved_decide(
    versions: Path, tmp_path: Path, old: float, new: float, noise: float, status: str
) -> None:
    store = shutil.copytree(versions, tmp_path / "versions")
    (series,), _ = read(runs_of(store), "wall_ns")
    before, behind = (series.points[index].run for index in (CHANGE - 1, CHANGE))
    rng = np.random.default_rng(3)

    def sampler(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        level = {"web-a": old, "web-b": new}[target]
        assert setting.params["argv"] == (["old"] if target == "web-a" else ["new"])
        return [Sample("wall_ns", level * (1 + noise * rng.standard_normal()))]

    plan = confirm.pair_plan(Store(store), before, behind)
    pair = make_run(store, plan, sampler)
    pair.update(labels={REPETITION: behind, AGAINST: before})
    (series,), _ = read(runs_of(store), "wall_ns")
    assert len(series.points) == RUNS, "a repetition is no point"
    judge = Judge(Store(store), runs_of(store), 0.03, 0.95)
    (change,) = analyse(series, HistorySettings(), judge).changes
    (repetition,) = change.repetitions
    assert (repetition.status, change.status) == (status, status)
    assert repetition.reference == f"run {before}"
    assert repetition.shift is not None
    assert status in change.sentence
