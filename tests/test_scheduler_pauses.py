"""What a scheduler's setting makes a loop wait, and what something else took."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))

from _scheduler_pauses import Pause, own, taken

MS = 1e6
TICK_NS, PERIOD_NS = 4 * MS, 20 * MS
STOPS: list[Pause] = [(start * MS, 5 * MS) for start in range(16, 216, 20)]
"""Stopped at ticks (at 0, 4, … ms) until a period begins (at 1, 21, … ms): ten times."""


@pytest.mark.parametrize(
    ("begin_ms", "length_ms", "wanted"),
    [
        (17.3, 3.7, True),  # between two ticks, to the period
        (20.0, 1.0, True),  # short, from the last tick to the period
        (20.4, 0.6, False),  # short, and by chance to the period
        (36.0, 8.0, True),  # a program had the CPU as the period began at 41 ms
        (37.5, 6.5, False),  # something else took the CPU over a period's begin
        (28.0, 6.0, False),  # from a tick, within a period
    ],
)
def test_a_pause_of_the_setting(begin_ms: float, length_ms: float, wanted: bool) -> None:
    of_it = own(STOPS, PERIOD_NS, TICK_NS)
    assert of_it((begin_ms * MS, length_ms * MS)) is wanted


def test_what_was_taken_has_the_time_and_the_variance_of_what_was_seen() -> None:
    # From the end of the first stop at 21 ms to 251 ms, without the other nine of 5 ms: 185 ms. The
    # pause before that is not counted. Exponential lengths of mean m have squares of 2 m^2.
    others: list[Pause] = [(5 * MS, 2 * MS), (25.5 * MS, 1 * MS), (45.5 * MS, 3 * MS)]
    rate, mean_ms = taken([sorted(STOPS + others)], 251 * MS, PERIOD_NS, TICK_NS)
    assert rate * mean_ms * 0.185 == pytest.approx(4)
    assert rate * 2 * mean_ms**2 * 0.185 == pytest.approx(1 + 9)


def test_nothing_taken() -> None:
    assert taken([STOPS], 251 * MS, PERIOD_NS, TICK_NS) == (0.0, 0.0)
    assert taken([], 251 * MS, PERIOD_NS, TICK_NS) == (0.0, 0.0)
