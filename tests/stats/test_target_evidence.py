"""What the rules look at."""

from __future__ import annotations

from nephoscope.stats.target_evidence import (
    TargetTrials,
    is_above,
    is_below,
    limit_lines,
)
from stats.judging import line


def test_readings_leave_out_what_is_null_or_no_number() -> None:
    trials = TargetTrials(
        counters=({"steal_ratio": None}, {}, {"steal_ratio": True}, {"steal_ratio": 0.5})
    )
    assert trials.readings("steal_ratio") == [0.5]


def test_bounds_take_the_whole_interval() -> None:
    estimate = line("x", "y_ns", 100, half=0.1).estimate
    assert is_above(estimate, 89)
    assert not is_above(estimate, 91)
    assert is_below(estimate, 111)
    assert not is_below(estimate, 109)


def test_long_evidence_is_cut_and_says_so() -> None:
    assert limit_lines(["a", "b", "c"], 2) == ("a", "b", "and 1 more")
    assert limit_lines(["a", "b"], 2) == ("a", "b")
