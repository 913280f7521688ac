"""Headline results over the newest runs of a target, with their last change point."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.features.history.drawn import DAY_S, START_S, append_run, machine
from tests.serve.made import call, settings

from nephoscope.report import report_files
from nephoscope.results import analyse_run
from nephoscope.serve import trends
from nephoscope.serve.app import make_app
from nephoscope.serve.overview import overview, reported_runs, trend_runs
from nephoscope.store import RUNNING, Store, identity
from nephoscope.store.index import RunIndex

DAYS, STEP = 50, 30


def made(folder: Path, days: int = DAYS) -> None:
    """Daily runs of one target whose null_ns rises by a fifth on day STEP."""
    rng = np.random.default_rng(3)
    for day in range(days):
        value = (120 if day >= STEP else 100) * (1 + 0.01 * rng.standard_normal())
        run = append_run(
            folder, START_S + day * DAY_S, {"null_ns": value}, fingerprint=machine(), rounds=2
        )
    report_files.write(analyse_run.build(run), run.report_path)


def answer(folder: Path, labels: tuple[str, ...] = ()) -> tuple[int, Any]:
    store = Store(folder)
    snapshot = RunIndex(store).snapshot()
    runs = {name: [run.row.id for run in own] for name, own in trend_runs(snapshot).items()}
    reply = trends.trends(store, runs, reported_runs(snapshot, store), labels)
    return reply.status, json.loads(reply.body)


@pytest.mark.slow
def test_a_step_is_the_last_change_of_its_headline_result(tmp_path: Path) -> None:
    made(tmp_path)
    status, content = answer(tmp_path)
    assert (status, content["complete"]) == (200, True)
    (trend,) = content["trends"]
    assert (trend["target"], trend["metric"]) == ("web", "null_ns")
    assert len(trend["at_s"]) == len(trend["values"]) == DAYS
    assert trend["at_s"] == sorted(trend["at_s"])
    change = trend["change"]
    assert (change["direction"], change["status"]) == ("worse", "suspected")
    assert change["at_s"] == START_S + STEP * DAY_S
    assert trend["text"].startswith("+2")
    assert trend["text"].endswith("suspected")
    assert answer(tmp_path) == (status, content)


def test_few_runs_are_no_series_that_can_be_tested(tmp_path: Path) -> None:
    made(tmp_path, days=3)
    (trend,) = answer(tmp_path)[1]["trends"]
    assert (trend["change"], trend["text"]) == (None, "3 runs, too few to test")


def test_summaries_that_have_no_time_are_left_for_the_next_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, days=3)
    monkeypatch.setattr(trends, "ANSWER_S", -1.0)
    status, content = answer(tmp_path)
    assert (status, content["complete"], content["trends"]) == (trends.PARTIAL, False, [])
    monkeypatch.undo()
    assert answer(tmp_path)[1]["complete"]


def test_a_newer_run_without_a_report_hides_no_results(tmp_path: Path) -> None:
    made(tmp_path, days=3)
    append_run(tmp_path, START_S + 4 * DAY_S, {"null_ns": 100.0}, fingerprint=machine())
    store = Store(tmp_path)
    (target,) = overview(RunIndex(store).snapshot(), store).targets
    assert target.verdict_run != target.last_run
    assert [line.metric for line in target.headlines] == ["null_ns"]
    assert target.headlines[0].run == target.verdict_run


def test_while_a_run_is_measured_there_are_none(tmp_path: Path) -> None:
    made(tmp_path, days=3)
    run = append_run(tmp_path, START_S + 4 * DAY_S, {"null_ns": 100.0}, fingerprint=machine())
    run.update(state=RUNNING, finished_at=None)
    with run.lock():
        run.event({"event": "session_started", **identity()})
        reply = call(make_app(settings(tmp_path)), "/api/v1/trends")
    assert reply.status == trends.PARTIAL
    assert (reply.json["trends"], reply.json["complete"]) == ([], False)
