"""What a result says of how a run was executed: counted by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests import schemas
from tests.store.factory import trial_record

from nephoscope.core.model import Sample, TrialRecord, TrialStatus
from nephoscope.report import report_files
from nephoscope.results import analyse_run
from nephoscope.results.execution import ExecutionSummary, analyse

from .made import NULL_PLAN, make_run, run_data

LOAD = {"name": "noise", "benchmark": "load.cpu", "target": "b", "covered_ratio": 0.5}


def record(round: int, target: str = "a", **more: object) -> TrialRecord:
    timeline = {"prepare": (0, 5), "start": (5, 25), "measure": (25, 125)}
    return trial_record(round, target, **{"timeline": timeline, **more})


def execution(manifest: dict[str, object], records: list[TrialRecord]) -> ExecutionSummary | None:
    return analyse(run_data(records, manifest=manifest))


def test_time_is_added_up_by_benchmark_and_phase() -> None:
    failed = record(3, status=TrialStatus.FAILED, timeline={"prepare": (0, 7), "start": (7, 9)})
    found = execution({}, [record(1), record(2), failed])
    assert found is not None
    times = {time.phase: time for time in found.phases}
    assert {phase: time.total_ns for phase, time in times.items()} == {
        "prepare": 5 + 5 + 7,
        "start": 20 + 20 + 2,
        "measure": 200,
    }
    assert (times["start"].n, times["start"].failed, times["start"].longest_ns) == (3, 1, 20)
    assert times["measure"].failed == 0
    assert found.skew is None


def test_targets_that_started_together_have_one_skew() -> None:
    group = [record(1, "a", skew_ns=10), record(1, "b", skew_ns=10)]
    other = [record(2, "a", skew_ns=1_000_001), record(2, "b", skew_ns=1_000_001)]
    found = execution({}, [*group, *other])
    assert found is not None
    assert found.skew is not None
    assert (found.skew.n, found.skew.largest_ns, found.skew.over) == (2, 1_000_001, 1)
    assert found.skew.values_ns == (10, 1_000_001)
    assert found.warnings[0].startswith("1 of 2 common starts were more than 1 ms apart")


def test_loads_count_the_trials_that_they_failed() -> None:
    died = record(
        2,
        loads=(LOAD,),
        status=TrialStatus.INVALID,
        reasons=("the load 'noise' (load.cpu on b) ended by itself before it was stopped: x",),
    )
    found = execution({}, [record(1, loads=({**LOAD, "covered_ratio": 1.0},)), died])
    assert found is not None
    (load,) = found.loads
    assert (load.n, load.died, load.covered_least) == (2, 1, 1.0)
    assert "did not last through 1 of 2 trials" in found.warnings[0]


def test_lost_targets_are_told_with_what_they_cost() -> None:
    gone = {"status": TrialStatus.FAILED, "failure_name": "target_lost", "timeline": {}}
    first = record(1, "b", reasons=("in phase start: b is gone: b hung up.",), **gone)
    later = record(2, "b", reasons=("not tried: b is gone: b cannot be reached.",), **gone)
    found = execution({"lost": {"b": "b cannot be reached."}}, [record(1), first, later])
    assert found is not None
    (lost,) = found.lost
    assert (lost.target, lost.is_abandoned, lost.trials) == ("b", True, 2)


def test_what_has_no_time_line_is_not_told(tmp_path: Path) -> None:
    run = make_run(tmp_path, NULL_PLAN, lambda *_: [Sample("null_ns", 1.0)])
    result = analyse_run.build(run)
    assert result.part(ExecutionSummary) is None
    told = report_files.document(result)
    assert told["execution"] is None
    schemas.validate(told, schemas.result_schema())


def test_the_json_of_an_execution_is_within_the_schema(tmp_path: Path) -> None:
    run = make_run(tmp_path, NULL_PLAN, lambda *_: [Sample("null_ns", 1.0)])
    result = analyse_run.build(run)
    found = execution({"lost": {"b": "gone"}}, [record(1, skew_ns=10, loads=(LOAD,))])
    told = report_files.document(replace(result, parts=(found,)))
    schemas.validate(json.loads(json.dumps(told)), schemas.result_schema())
    assert told["execution"]["skew"]["n"] == 1


@pytest.mark.parametrize(
    ("cpus", "machine", "said"),
    [([0], "m", True), ([1], "m", False), ([0], "another", False)],
)
def test_a_load_on_the_victims_cpu_is_stated(cpus: list[int], machine: str, said: bool) -> None:
    def document(machine: str, allowed: list[int]) -> dict[str, Any]:
        return {
            "identity": {"machine_id_hash": machine},
            "topology": {"allowed_cpus": allowed},
        }

    loaded = record(1, "victim", loads=({**LOAD, "name": "cpu", "target": "neighbour"},))
    prints = {"victim": document("m", [0]), "neighbour": document(machine, cpus)}
    found = analyse(run_data([loaded], fingerprints=prints))
    assert found is not None
    assert [text.startswith("The load 'cpu' on neighbour and the trials on victim may both run on "
                            "CPU 0:") for text in found.warnings] == [True] * said  # fmt: skip
