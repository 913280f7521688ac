"""Series of a drawn store: by target and setting, renamed targets, percentiles, damaged runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.features.history.drawn import DAY_S, START_S, append_run, machine
from tests.results.made import NULL_PLAN, make_run
from tests.unmerged import unmerge

from nephoscope.core.errors import UnknownName
from nephoscope.core.model import Sample
from nephoscope.features.compaction.summarise import MACHINE
from nephoscope.features.history.series import REPETITION, Series, read
from nephoscope.results.run_settings import CPU_MODEL
from nephoscope.store import Store


def series_of(store: Path, metric: str = "null_ns", **filters: list[str]) -> list[Series]:
    return read(Store(store).runs(), metric, **filters)[0]


def test_a_point_is_a_run_with_its_interval_facts_and_steal(tmp_path: Path) -> None:
    for day, value in enumerate((100.0, 110.0)):
        append_run(tmp_path, START_S + day * DAY_S, {"null_ns": value}, rounds=6, steal=0.02)
    (series,) = series_of(tmp_path)
    assert [point.estimate.value for point in series.points] == [100, 110]
    assert [point.at_s - START_S for point in series.points] == [0, DAY_S]
    point = series.points[0]
    assert (point.estimate.low, point.estimate.high, point.estimate.n) == (100, 100, 6)
    assert (point.steal, point.facts[CPU_MODEL], point.facts[MACHINE]) == (0.02, "Xeon", "abc")
    assert (series.target, series.unit, series.better.value) == ("web", "ns", "lower")
    assert series.params["value"] == 100.0


def test_a_clock_that_was_set_back_does_not_change_the_order(tmp_path: Path) -> None:
    append_run(tmp_path, START_S, {"null_ns": 2.0})
    append_run(tmp_path, START_S - 3600, {"null_ns": 1.0})
    (series,) = series_of(tmp_path)
    assert [point.estimate.value for point in series.points] == [1, 2]


def test_other_parameters_and_targets_are_other_series(tmp_path: Path) -> None:
    append_run(tmp_path, START_S, {"null_ns": 1.0})
    append_run(tmp_path, START_S + 1, {"null_ns": 1.0}, parameter=200.0)
    append_run(tmp_path, START_S + 2, {"null_ns": 1.0}, target="db", fingerprint=machine(host="b"))
    found = [(one.target, one.params["value"]) for one in series_of(tmp_path)]
    assert sorted(found) == [("db", 100.0), ("web", 100.0), ("web", 200.0)]
    assert len(series_of(tmp_path, targets=["db"])) == 1
    with pytest.raises(UnknownName, match="No run of target cache has"):
        series_of(tmp_path, targets=["cache"])


def test_a_renamed_target_continues_its_series(tmp_path: Path) -> None:
    append_run(tmp_path, START_S, {"null_ns": 1.0}, target="old")
    append_run(tmp_path, START_S + 1, {"null_ns": 2.0}, target="new")
    (series,) = series_of(tmp_path)
    assert series.target == "new"
    assert [point.target for point in series.points] == ["old", "new"]


def test_percentiles_of_histograms_are_series_too(tmp_path: Path) -> None:
    def requests(setting: object, number: int, target: str) -> list[Sample]:
        return [Sample("null_latency_ns", float(value), 20, 1) for value in range(1, 101)]

    make_run(tmp_path, NULL_PLAN, requests, rounds=8)
    (series,) = series_of(tmp_path, "null_latency_p95_ns")
    assert series.points[0].estimate.value == 95
    (series,) = series_of(tmp_path, "null_latency_p90_ns")
    assert series.points[0].estimate.value == 90


def test_an_unknown_metric_is_named_with_the_nearest(tmp_path: Path) -> None:
    append_run(tmp_path, START_S, {"null_ns": 1.0})
    with pytest.raises(UnknownName, match=r"the metric 'nul_ns' .did you mean 'null_ns'"):
        series_of(tmp_path, "nul_ns")


def test_damaged_trials_and_repetitions_are_no_points(tmp_path: Path) -> None:
    append_run(tmp_path, START_S, {"null_ns": 1.0})
    damaged = append_run(tmp_path, START_S + 1, {"null_ns": 2.0})
    append_run(tmp_path, START_S + 2, {"null_ns": 3.0}, labels={REPETITION: "x"})
    for file in unmerge(damaged).trials_path.glob("*.parquet"):
        file.write_bytes(b"PAR1")
    (series,) = series_of(tmp_path)
    assert [point.estimate.value for point in series.points] == [1]
