"""The health of targets, from their newest run and its findings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.results.made import NULL_PLAN, TWO_TARGETS, make_run

from nephoscope.core.model import Sample
from nephoscope.report import report_files
from nephoscope.results import analyse_run
from nephoscope.serve.overview import Overview, overview
from nephoscope.store import RUNNING, Store, StoredRun
from nephoscope.store.digests import digest_of
from nephoscope.store.index import RunIndex


def made(store: Path, plan: str = NULL_PLAN, **more: Any) -> StoredRun:
    return make_run(store, plan, lambda *_: [Sample("null_ns", 1.0)], rounds=1, **more)


def built(store: Path) -> Overview:
    run_store = Store(store)
    return overview(RunIndex(run_store).snapshot(), run_store)


def report(run: StoredRun, *findings: tuple[str, str]) -> None:
    """Writes a report whose result has these findings (severity, sentence)."""
    report_files.write(analyse_run.build(run), run.report_path)
    path = run.report_path / "result.json"
    result = json.loads(path.read_text())
    result["findings"] = [
        {"id": "x", "severity": severity, "sentence": text, "evidence": [], "next_step": ""}
        for severity, text in findings
    ]
    path.write_text(json.dumps(result))
    sums = run.report_path / "report.sha256"
    lines = [line for line in sums.read_text().splitlines() if "result.json" not in line]
    sums.write_text("\n".join([*lines, f"{digest_of(path.read_bytes())}  result.json"]) + "\n")


def test_an_empty_store(tmp_path: Path) -> None:
    empty = built(tmp_path)
    assert (empty.runs, empty.targets, empty.states) == (0, (), {})


def test_a_target_is_ok_or_has_a_warning_by_its_last_findings(tmp_path: Path) -> None:
    report(made(tmp_path), ("info", "All is well."))
    assert built(tmp_path).targets[0].health == "ok"
    run = made(tmp_path)
    report(run, ("info", "First."), ("warning", "The disk is slow."), ("notice", "Third."))
    (target,) = built(tmp_path).targets
    assert (target.health, target.reason, target.verdict_run) == (
        "warning",
        "The disk is slow.",
        run.id,
    )
    assert [finding.severity for finding in target.findings] == ["warning", "notice", "info"]
    assert target.runs == 2


@pytest.mark.parametrize("state", ["failed", RUNNING])
def test_a_target_whose_newest_run_failed_keeps_its_last_verdict(
    tmp_path: Path, state: str
) -> None:
    before = made(tmp_path)
    report(before, ("info", "All is well."))
    after = made(tmp_path)
    after.update(state=state)
    (target,) = built(tmp_path).targets
    assert target.health == "failed"
    assert target.last_run == after.id
    assert target.verdict_run == before.id


def test_a_lost_target_is_lost_and_the_other_one_is_not(tmp_path: Path) -> None:
    run = made(tmp_path, TWO_TARGETS)
    run.update(lost={"two": "It does not answer."})
    health = {target.name: (target.health, target.reason) for target in built(tmp_path).targets}
    assert health["two"] == ("lost", "It does not answer.")
    assert health["one"][0] == "ok"


def test_a_result_that_was_changed_is_not_believed(tmp_path: Path) -> None:
    run = made(tmp_path)
    report(run, ("warning", "The disk is slow."))
    path = run.report_path / "result.json"
    path.write_text(path.read_text().replace("slow", "fast"))
    assert built(tmp_path).targets[0].findings == ()


def test_states_and_names_for_filters(tmp_path: Path) -> None:
    made(tmp_path)
    made(tmp_path, TWO_TARGETS, state="failed")
    found = built(tmp_path)
    assert found.states == {"finished": 1, "failed": 1}
    assert (found.benchmarks, found.plans) == (("null",), ("made",))
    assert found.targets_total == 3


def test_headline_results_of_several_plans_and_failed_runs_apart(tmp_path: Path) -> None:
    first = made(tmp_path)
    report(first)
    second = make_run(
        tmp_path, NULL_PLAN.replace("made", "other"), lambda *_: [Sample("null_ns", 7.0)], rounds=3
    )
    report(second)
    failed = made(tmp_path, state="failed")
    content = built(tmp_path)
    (target,) = content.targets
    (line,) = target.headlines
    assert (line.metric, line.run, line.value) == ("null_ns", second.id, "7.00 ns")
    assert [row.id for row in content.recent] == [second.id, first.id]
    assert [row.id for row in content.failed] == [failed.id]
