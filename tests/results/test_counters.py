"""Counters beside the trials: typical and worst, and why a spare CPU was not watched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.results.made import run_data
from tests.store.factory import trial_record

from nephoscope.core import documents
from nephoscope.core.model import TrialRecord
from nephoscope.results.counters import CounterLine, analyse


def record(number: int, **values: Any) -> TrialRecord:
    return trial_record(number, counters=values)


def counters(records: list[TrialRecord]) -> tuple[CounterLine, ...]:
    return analyse(run_data(records)).lines


def test_median_and_worst_of_the_trials_that_show_it() -> None:
    steal = [0.1, None, 0.3, 0.2]
    lines = counters([record(n + 1, steal_ratio=value) for n, value in enumerate(steal)])
    line = next(one for one in lines if one.counter == "steal_ratio")
    assert (line.median, line.maximum, line.n, line.trials, line.why_missing) == (
        0.2,
        0.3,
        3,
        4,
        None,
    )


def test_what_is_hidden_is_null_with_its_reason() -> None:
    busy = "the trial uses every CPU that it has"
    spare = {"spare_gap_ratio": None, "spare_missing": busy}
    lines = {one.counter: one for one in counters([record(1, **spare), record(2, **spare)])}
    assert lines["spare_gap_ratio"].median is None
    assert lines["spare_gap_ratio"].why_missing == busy
    assert lines["steal_ratio"].why_missing == "not shown by this machine"
    assert documents.to_json(lines["steal_ratio"])["median"] is None


def test_warm_up_does_not_count_and_nothing_gives_nothing() -> None:
    assert counters([record(0, steal_ratio=0.5)]) == ()
    assert counters([replace(record(1), counters={})]) == ()
    lines = counters([record(0, steal_ratio=0.5), record(1, steal_ratio=0.0)])
    assert lines[0].maximum == 0.0
