"""Summaries give the answers of the trials, and are computed again when these change."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from tests.features.compaction.made import METRICS, drawn_run, history, trials_of
from tests.features.history.drawn import START_S
from tests.results.made import TWO_TARGETS

from nephoscope.core.model import Estimate, Shape
from nephoscope.features.compaction import summarise
from nephoscope.features.compaction.summarise import summary_of
from nephoscope.results import lines, names
from nephoscope.stats.statistics import estimates, histograms
from nephoscope.store import RUNNING, Store, StoredRun, counts, journal, query, summary


def estimate_from_trials(run: StoredRun, metric: str, target: str, confidence: float) -> Estimate:
    """The estimate as the rows of the trial files give it."""
    place = {one.key.name: one.position for one in run.records() if counts(one)}
    for key, group in lines.group_scalars(query.trial_medians(run), place).items():
        if (key.metric, key.target) == (metric, target):
            return estimates.median(group.values, unit=group.unit, confidence=confidence)
    quantile = float(f"0.{metric.partition('_p')[2].partition('_')[0]}")
    for key, latencies in lines.group_histograms(query.histograms(run), place).items():
        if key.target == target:
            seed = names.seed_of(*key, metric)
            return histograms.quantile_of_trials(
                latencies.values, quantile, unit=latencies.unit, confidence=confidence, seed=seed
            )
    raise AssertionError(metric)


@pytest.mark.parametrize("confidence", [0.95, 0.9])
def test_answers_are_those_of_the_trials(tmp_path: Path, confidence: float) -> None:
    runs = [drawn_run(tmp_path, START_S + n, seed=n, plan=TWO_TARGETS) for n in range(3)]
    for _ in range(2):  # computed, then read
        for metric in METRICS:
            series = history(tmp_path, metric, confidence=confidence)
            assert sorted(one.target for one in series) == ["one", "two"]
            for one in series:
                for point, run in zip(one.points, runs, strict=True):
                    wanted = estimate_from_trials(run, metric, point.target, confidence)
                    assert point.estimate == wanted


def test_a_summary_holds_each_trial_that_counts(tmp_path: Path) -> None:
    one = summary_of(drawn_run(tmp_path, START_S, labels={"env": "prod"}))
    assert (one.trials, one.labels, one.started_s) == (9, {"env": "prod"}, START_S)
    shapes = {metric.metric: metric for metric in one.metrics}
    assert len(shapes["null_ns"].values()) == 7  # one of eight is invalid
    assert [counts.sum() for _, counts in shapes["null_latency_ns"].histograms()] == [600] * 7
    assert shapes["null_latency_ns"].shape is Shape.HISTOGRAM


def test_a_line_comes_back_as_it_was(tmp_path: Path) -> None:
    one = summary_of(drawn_run(tmp_path, START_S))
    assert summary.parsed(summary.line_of(one)[:-1]) == one


def test_the_second_reading_computes_nothing(tmp_path: Path) -> None:
    first = summary_of(drawn_run(tmp_path, START_S))
    with mock.patch.object(summarise, "_computed", side_effect=AssertionError):
        (run,) = Store(tmp_path).runs()
        assert summary_of(run) == first


def change_label(run: StoredRun) -> None:
    run.update(labels={"a": "b"})


def damage_trial(run: StoredRun) -> None:
    trials_of(run)[0].write_bytes(b"PAR1")


def remove_trial(run: StoredRun) -> None:
    trials_of(run)[0].unlink()


def edit_summary(run: StoredRun) -> None:
    path = run.path / summary.FILE
    path.write_bytes(path.read_bytes().replace(b'"trials": 9', b'"trials": 8'))


def other_program(run: StoredRun) -> None:
    one = summary.read(run.path)
    assert one is not None
    summary.write(run.path, replace(one, nephoscope="0.0.1", trials=1))


def other_format(run: StoredRun) -> None:
    known = summary.read(run.path)
    assert known is not None
    with mock.patch.object(summary, "RUN_SUMMARY", replace(summary.RUN_SUMMARY, version=99)):
        summary.write(run.path, replace(known, trials=1))


def half_written(run: StoredRun) -> None:
    path = run.path / summary.FILE
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize(
    "change",
    [
        change_label,
        damage_trial,
        remove_trial,
        edit_summary,
        other_program,
        other_format,
        half_written,
    ],
)
def test_a_changed_file_or_summary_is_computed_again(
    tmp_path: Path, change: Callable[[StoredRun], None]
) -> None:
    summary_of(drawn_run(tmp_path, START_S))
    change(Store(tmp_path).runs()[0])
    (run,) = Store(tmp_path).runs()
    again = summary_of(run)
    assert again == replace(summarise._computed(run), stamp=summary.stamp_of(run.path))
    assert summary.read(run.path) == again
    assert bool(again.damaged) == (change in (damage_trial, remove_trial))


def test_a_run_that_is_not_over_has_no_file(tmp_path: Path) -> None:
    run = drawn_run(tmp_path, START_S)
    run.update(state=RUNNING)
    assert summary_of(run).trials == 9
    assert not (run.path / summary.FILE).exists()


def test_a_store_that_cannot_be_written_is_read(tmp_path: Path) -> None:
    run = drawn_run(tmp_path, START_S)
    with mock.patch("pathlib.Path.replace", side_effect=OSError(30, "read-only")):
        assert summary_of(run).trials == 9
    assert sorted(path.name for path in run.path.iterdir()) == [
        "journal.jsonl",
        "manifest.json",
        "trials",
    ]


def test_a_head_that_no_program_wrote_is_no_summary(tmp_path: Path) -> None:
    one = summary_of(drawn_run(tmp_path, START_S))
    line = json.loads(summary.line_of(one))
    line.pop("crc32")
    for key, value in (("head", "e30="), ("data", []), ("started_s", -1), ("labels", [])):
        assert summary.parsed(journal.with_checksum({**line, key: value})[:-1]) is None
