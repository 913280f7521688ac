"""Causes of excluded trials, and their values beside those that count."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest
from tests.results.made import TWO_TARGETS, make_run
from tests.store.factory import trial_record

from nephoscope.core.model import Sample, Setting, TrialStatus
from nephoscope.measure.plans.model import Invalidity
from nephoscope.results import analyse_run, exclusions


def test_every_rule_of_validity_has_a_class() -> None:
    classes = (exclusions.OUTCOME_CAUSES, exclusions.INSTRUMENT_CAUSES)
    for code in get_args(Invalidity):
        assert sum(code in one for one in classes) == 1, code


@pytest.mark.parametrize(
    ("status", "cause", "depends"),
    [
        (TrialStatus.INVALID, "throttled", True),
        (TrialStatus.INVALID, "late_sends", True),
        (TrialStatus.INVALID, "clock_step", False),
        (TrialStatus.INVALID, "load_ended", False),
        # Runs of earlier versions have no codes: the cause may have been any.
        (TrialStatus.INVALID, "", True),
        (TrialStatus.FAILED, "deadline", True),
        (TrialStatus.FAILED, "no_direct_io", False),
        (TrialStatus.VALID, "", False),
    ],
)
def test_which_exclusions_may_depend_on_the_outcome(
    status: TrialStatus, cause: str, depends: bool
) -> None:
    codes = (cause,) if cause and status is TrialStatus.INVALID else ()
    failure = cause if status is TrialStatus.FAILED else ""
    record = trial_record(1, status=status, reason_codes=codes, failure_name=failure)
    assert exclusions.may_depend_on_outcome(record) is depends
    warmup = trial_record(0, status=status, reason_codes=codes, failure_name=failure)
    assert not exclusions.may_depend_on_outcome(warmup)


def sampled(setting: Setting, number: int, target: str) -> Sequence[Sample]:
    return [Sample("null_ns", 100.0 + number)]


def test_lines_hold_their_excluded_trials(tmp_path: Path) -> None:
    causes = {(3, "two"): "throttled", (5, "two"): "throttled", (7, "two"): "deadline"}
    run = make_run(
        tmp_path, TWO_TARGETS, sampled, cause_of=lambda number, name: causes.get((number, name), "")
    )
    one, two = analyse_run.build(run).metrics
    assert one.exclusions.count == 0
    assert two.exclusions.by_cause == {"throttled by a CPU quota": 2, "over the time limit": 1}
    assert two.exclusions.trials == 10
    assert two.exclusions.slow_rounds == (7,)
    assert two.rounds == (1, 2, 4, 6, 8, 9, 10)
    assert two.exclusions.rounds == (1, 2, 3, 4, 5, 6, 8, 9, 10)
    assert two.exclusions.values[2] == 103.0


def test_a_stepped_clock_is_no_exclusion_of_this_kind(tmp_path: Path) -> None:
    run = make_run(
        tmp_path, TWO_TARGETS, sampled, cause_of=lambda number, _: "clock_step" * (number == 2)
    )
    assert all(line.exclusions.count == 0 for line in analyse_run.build(run).metrics)
