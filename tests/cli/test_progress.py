"""What is shown while it measures, on a stream that is no terminal and on one that is."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from tests.store.factory import trial_record

from nephoscope.cli.kit import output
from nephoscope.cli.kit.progress import ProgressDisplay
from nephoscope.cli.kit.remaining import left
from nephoscope.core.model import Setting, TrialKey, TrialStatus
from nephoscope.measure.runs import Outcome, Status
from nephoscope.measure.runs.schedule.progress import TimeLeft

SETTING = Setting(0, "disk.io", {"queue_depth": 32}, {"queue_depth": 32}, 10.0)


class Terminal(io.StringIO):
    """A stream that says that a person looks at it."""

    def isatty(self) -> bool:
        return True


def status(spent_s: float, budget_s: float | None = 40.0) -> Status:
    return Status(trials=7, alternatives=5, ended=1, spent_s=spent_s, budget_s=budget_s)


def test_a_log_gets_a_line_every_ten_seconds_with_the_time_left(capsys) -> None:  # type: ignore[no-untyped-def]
    now = 0.0
    with ProgressDisplay(io.StringIO(), now=lambda: now) as progress:
        for now in (1.0, 5.0, 9.0, 11.0, 12.0, 20.0, 22.0):
            progress.trial_started(TrialKey(2, 0, "local"), SETTING, status(now))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "round 2, disk.io (queue depth 32) · 7 trials, 1 of 5 settings precise enough · "
        "about 29 s left",
        "round 2, disk.io (queue depth 32) · 7 trials, 1 of 5 settings precise enough · "
        "about 18 s left",
    ]


def test_without_a_budget_no_time_is_promised(capsys) -> None:  # type: ignore[no-untyped-def]
    times = iter([0.0, 11.0, 11.0, 11.0])
    with ProgressDisplay(io.StringIO(), now=lambda: next(times)) as progress:
        progress.trial_started(TrialKey(0, 0, "local"), SETTING, status(11.0, None))
    assert capsys.readouterr().err == (
        "warm-up, disk.io (queue depth 32) · 7 trials, 1 of 5 settings precise enough\n"
    )


def test_what_cannot_be_measured_is_said_at_once(capsys) -> None:  # type: ignore[no-untyped-def]
    record = trial_record(
        0, benchmark="disk.io", status=TrialStatus.FAILED, reasons=("no direct I/O\nhere",)
    )
    outcome = Outcome(
        0,
        "local",
        "disk.io",
        {"queue_depth": 32},
        "refused",
        0,
        10,
        "it failed 3 times: no direct I/O here",
    )
    output.forget_failures()
    with ProgressDisplay(io.StringIO()) as progress:
        progress.trial_ended(record, status(1.0))
        progress.trial_ended(record, status(1.0))
        progress.alternative_ended(outcome, status(1.0))
    assert capsys.readouterr().err == (
        "! disk.io: no direct I/O here\n! disk.io (queue depth 32) on local: it failed 3 times.\n"
    )


def test_a_terminal_gets_one_live_line_and_what_is_said_above_it(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    with ProgressDisplay(stream) as progress:
        progress.warning("Other work runs [here].")
        progress.trial_started(TrialKey(2, 0, "local"), SETTING, status(10.0))
    told = stream.getvalue()
    assert "! Other work runs [here]." in told
    assert "30 s left" in told
    assert "disk.io (queue depth 32)" in told


@pytest.mark.parametrize("columns", [80, 200])
def test_the_live_line_cuts_the_description_and_never_the_time_left(
    columns: int, monkeypatch
) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = Terminal()
    long = replace(SETTING, factors={f"factor_{number}": "a long level" for number in range(9)})
    known = replace(status(0.0, None), time_left=TimeLeft(4200.0, False))
    with ProgressDisplay(stream) as progress:
        progress.trial_started(TrialKey(2, 0, "local"), long, known)
    assert "at least 1 h 10 min left, 1 of 5 settings done" in stream.getvalue()
    assert "round 2, disk" in stream.getvalue()


def test_several_targets_at_once_are_told_side_by_side(capsys) -> None:  # type: ignore[no-untyped-def]
    times = iter([0.0, 11.0, 11.0, 22.0, 22.0, 33.0, 33.0])
    with ProgressDisplay(io.StringIO(), now=lambda: next(times)) as progress:
        progress.trial_started(TrialKey(1, 0, "a"), SETTING, status(0.0, None))
        progress.trial_started(TrialKey(1, 0, "b"), SETTING, status(0.0, None))
    assert capsys.readouterr().err.splitlines() == [
        "round 1, disk.io (queue depth 32) · 7 trials, 1 of 5 settings precise enough",
        "round 1, a: disk.io (queue depth 32); b: disk.io (queue depth 32) · "
        "7 trials, 1 of 5 settings precise enough",
    ]


@pytest.mark.parametrize(("exact", "words"), [(True, "about"), (False, "at least")])
def test_the_time_left_says_whether_it_may_become_more(exact: bool, words: str) -> None:
    known = replace(status(0.0, None), time_left=TimeLeft(200.0, exact))
    assert left(known) == f"{words} 3 min 20 s left"


def test_what_is_made_ready_is_said(capsys) -> None:  # type: ignore[no-untyped-def]
    with ProgressDisplay(io.StringIO()) as progress:
        progress.reported("Lab l is made (2 hosts).")
    assert capsys.readouterr().err == "Lab l is made (2 hosts).\n"
