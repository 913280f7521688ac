"""Rounds that are left out change no verdict."""

from __future__ import annotations

from statistics import median

from hypothesis import given
from hypothesis import strategies as st
from tests.majorities import hold_in_most

BELOW, ABOVE = 0.72, 0.78


@given(values=st.lists(st.floats(0.7, 0.8), min_size=9, max_size=9))
def test_the_verdict_is_that_of_the_median_of_all_rounds(values: list[float]) -> None:
    left = iter(values)

    def measure() -> tuple[bool, bool]:
        value = next(left)
        return value >= BELOW, value <= ABOVE

    assert hold_in_most(9, measure) is (BELOW <= median(values) <= ABOVE)
    # What is left out is less than half: a verdict needs most of the rounds.
    assert len(list(left)) <= 4


def test_five_rounds_of_nine_that_agree_decide() -> None:
    rounds = [False, True, True, True, True, True, False, False, False]
    assert hold_in_most(9, lambda: [rounds.pop(0)])
    assert rounds == [False, False, False]
