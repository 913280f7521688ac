"""The public Python interface: what its objects show, its tables, and how it fails."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.store.factory import filled

from nephoscope import stats
from nephoscope.api import NephoscopeError, Run, RunStore, open_store
from nephoscope.core.model import Estimate

STORED = Path(__file__).parent / "golden" / "stored_run" / "runs"
METRIC = "response_time_mean_ns"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    folder = tmp_path_factory.mktemp("store")
    (stored,) = STORED.iterdir()
    for name in (stored.name, re.sub(r"-(\d{6})-", "-235959-", stored.name)):
        shutil.copytree(stored, folder / "runs" / name)
    return open_store(folder)


@pytest.fixture(scope="module")
def run(store: RunStore) -> Run:
    return store.run("latest")


def test_each_object_shows_itself_in_words(store: RunStore, run: Run) -> None:
    assert repr(store) == f"<RunStore {store.path}>"
    assert repr(run) == f"<Run {run.id}, finished>"
    ((name, estimate),) = run.headlines().items()
    assert name == "sim.queue response time mean"
    assert repr(estimate) == "<Estimate 5.03 ms [4.91, 5.11] (n = 6), 95 % confidence>"
    comparison = store.compare(*store.runs()["id"].to_pylist())
    assert repr(comparison) == f"<Comparison: {comparison.conclusion}>"
    assert repr(run.plots()[0]) == "<Plot headline-trials: Headline results over the run>"
    assert repr(store.history(METRIC)).startswith(f"<MetricHistory {METRIC}: 1 series, 2 points")


def test_a_notebook_gets_tables_with_the_same_figures(store: RunStore, run: Run) -> None:
    row = "<td>sim.queue response time mean</td><td>5.03 ms</td><td>[4.91, 5.11]</td><td>6</td>"
    assert row in run._repr_html_()
    (estimate,) = run.headlines().values()
    assert "5.03 ms [4.91, 5.11] (n = 6)" in estimate._repr_html_()
    comparison = store.compare(*store.runs()["id"].to_pylist())
    html = comparison._repr_html_()
    assert comparison.conclusion in html
    assert "<td>equivalent</td>" in html
    assert f"{comparison.table().num_rows - 1} other comparisons" in html
    assert "<td>5.03 ms</td><td>[4.91, 5.11]</td>" in store.history(METRIC)._repr_html_()


def test_texts_from_outside_are_no_markup() -> None:
    estimate = Estimate(1.0, None, None, 0.95, 1, "none", "<i>m</i>", note="<script>")
    assert "<script>" not in estimate._repr_html_()
    assert "&lt;i&gt;m" in estimate._repr_html_()


def test_labels_are_columns_of_the_runs(tmp_path: Path) -> None:
    stored, _ = filled(tmp_path)
    stored.update(labels={"kernel": "6.1"})
    store = open_store(tmp_path)
    assert store.runs()["label_kernel"].to_pylist() == ["6.1"]
    assert store.run(stored.id).labels == {"kernel": "6.1"}


def test_a_history_has_a_row_for_each_run(store: RunStore) -> None:
    history = store.history(METRIC, targets=["sim"])
    rows = history.table().to_pylist()
    assert [row["run"] for row in rows] == store.runs()["id"].to_pylist()
    estimate = next(iter(store.run("latest").headlines().values()))
    for row in rows:
        assert (row["value"], row["low"], row["high"]) == (
            estimate.value,
            estimate.low,
            estimate.high,
        )
    assert history.changes().num_rows == 0
    assert any("2 runs from" in note for note in history.notes)


FAILURES: tuple[tuple[Callable[[RunStore], object], str], ...] = (
    (lambda store: store.run("nosuch"), "There is no run 'nosuch'"),
    (lambda store: store.run(3), "There is no run '3'"),  # type: ignore[arg-type]
    (lambda store: store.run().estimates(confidence=1.5), "A confidence of 1.5 has no meaning"),
    (lambda store: store.compare("latest"), "Name two runs"),
    (lambda store: store.compare("latest", "latest", confidence=7), "A confidence of 7"),
    (lambda store: store.history("nosuch"), "No selected run has the metric 'nosuch'"),
    (lambda store: store.history(METRIC, confidence=0), "A confidence of 0"),
    (lambda store: store.history(METRIC, targets=["nosuch"]), "No run of target nosuch"),
    (lambda store: open_store("/nosuch"), "There is no store at /nosuch"),
    (lambda store: open_store(3), "3 is no folder"),  # type: ignore[arg-type]
    (lambda store: stats.median("abc"), "not one series of numbers"),
    (lambda store: stats.median([[1], [2, 3]]), "not one series of numbers"),
    (lambda store: stats.median([1, 2, 3], confidence=2), "A confidence of 2"),
    (lambda store: stats.ratio([1, 2], [1, 2], better="up"), "not 'up'"),  # type: ignore[arg-type]
    (lambda store: stats.paired([1, 2], [1], better="lower"), "no pairs"),
    (lambda store: stats.history([1] * 50, false_alarms=3), "false alarms"),
)


def test_every_failure_is_one_sentence(store: RunStore) -> None:
    for call, sentence in FAILURES:
        with pytest.raises(NephoscopeError, match=re.escape(sentence)):
            call(store)
