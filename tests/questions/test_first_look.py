"""Questions about what a user sees first: how sure, how steady, and what disturbed it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from tests.questions.conftest import Asking
from tests.results.made import NULL_PLAN, make_run

from nephoscope.core.model import Sample, Setting


def around(value: float, spread: float) -> object:
    """A sampler of trials that lie evenly within `spread` (a ratio) around a value."""

    def sampler(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        return [Sample("null_ns", value * (1 + spread * ((number * 7) % 11 - 5) / 5))]

    return sampler


@pytest.mark.parametrize(
    ("spread", "lowest", "highest"), [(0.005, 0.0, 2.0), (0.08, 2.0, 10.0), (0.6, 10.0, 100.0)]
)
def test_how_steady_is_it(ask: Asking, spread: float, lowest: float, highest: float) -> None:
    """How steady is this machine from trial to trial: can I plan with the number?"""
    make_run(ask.folder / "store", NULL_PLAN, around(100, spread), rounds=40)  # type: ignore[arg-type]
    answer = ask("nephoscope show latest --full-report")
    row = re.search(r"null +[\d.]+ ns +\[.*\] +40 +([\d.]+) %( ▲)?", answer.text)
    assert row is not None, answer.text
    assert lowest <= float(row[1]) < highest
    assert bool(row[2]) == (lowest >= 10)
    answer.says("CV is the robust coefficient of variation")


def test_was_something_else_running(ask: Asking) -> None:
    """My colleague's build ran on the VM meanwhile. Are these numbers those of the machine?"""
    counters = {"others_busy_cpus": 0.8, "elapsed_ns": 10**8}
    make_run(
        ask.folder / "store",
        NULL_PLAN,
        around(100, 0.01),
        rounds=12,
        counters=counters,  # type: ignore[arg-type]
    )
    answer = ask("nephoscope show latest")
    answer.says(r"Measured on a busy machine: other programs used 0\.800 CPUs \[.*\] \(n = 12\)")
    answer.says(r"what they left of it\..*null")  # before the headline results


def test_is_one_execution_enough(ask: Asking) -> None:
    """The time ran out after two trials. What do I know?"""
    make_run(ask.folder / "store", NULL_PLAN, around(100, 0.01), rounds=2)  # type: ignore[arg-type]
    answer = ask("nephoscope show latest")
    answer.says(r"Too few trials for an interval.* \(2 trials\)")
    answer.never_says(r"no interval 2\b")


def test_which_commands_are_there(ask: Asking) -> None:
    """What can `nephoscope cost` do?"""
    for group in ("cost", "sla", "lab", "network", "simulate", "study"):
        answer = ask(f"nephoscope {group}", code=2)
        assert answer.err.count("\n") > 8, "the help has its lines"
        answer.never_says("nephoscope: Usage")
