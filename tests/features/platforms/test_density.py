"""The search for the number of guests whose p99 doubles, on ratios that the test sets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.features.platforms.made import step

from nephoscope.features.platforms.density import NoFurtherGuest, conclude, search, steps_at_most
from nephoscope.features.platforms.records import DensityStep


def searched(
    ratio: Callable[[int], float], most: int, possible: int = 10_000
) -> tuple[list[DensityStep], str]:
    async def measure(number: int) -> DensityStep:
        if number > possible:
            raise NoFurtherGuest(possible, "there is no memory")
        return step(number, ratio(number), 0.95 * ratio(number), 1.05 * ratio(number))

    return asyncio.run(search(measure, most))


@given(st.integers(2, 200), st.integers(1, 200))
def test_the_search_finds_where_the_p99_doubles(doubles_at: int, most: int) -> None:
    steps, stopped = searched(lambda number: 2.5 if number >= doubles_at else 1.2, most)
    found = conclude("uml", steps, stopped, None).guests
    assert len(steps) <= steps_at_most(most)
    if most == 1:
        assert found is None
    elif most >= doubles_at:
        assert stopped == f"the p99 doubled at {doubles_at} guests"
        assert found is not None
        assert (found.value, found.low, found.high) == (doubles_at - 1,) * 3
    else:
        assert stopped == f"the limit of {most} guests (--max-guests) was reached"
        assert found is not None
        assert (found.value, found.low, found.high) == (most, most, None)
        assert found.note == "The p99 did not double."


@given(st.integers(0, 60))
def test_the_search_measures_as_many_as_can_run(possible: int) -> None:
    steps, stopped = searched(lambda number: 1.0, 100, possible)
    assert stopped == "there is no memory"
    assert max((one.guests for one in steps), default=1) == max(1, possible)


def test_uncertain_steps_widen_the_interval() -> None:
    steps = [
        step(2, 1.2, 1.1, 1.4),
        step(4, 1.8, 1.5, 2.3),
        step(8, 2.4, 1.9, 3),
        step(6, 2.1, 2, 4),
    ]
    found = conclude("qemu", steps, "", None).guests
    assert found is not None
    assert (found.value, found.low, found.high) == (4, 2, 5)
    assert [one.guests for one in conclude("qemu", steps, "", None).steps] == [2, 4, 6, 8]


def test_a_doubling_that_is_not_proven_is_stated() -> None:
    _, stopped = searched(lambda number: 2.05 if number >= 3 else 1.0, 4)
    assert stopped == "the p99 doubled at 3 guests, which its interval does not prove"


def test_an_unbounded_ratio_proves_nothing() -> None:
    found = conclude("qemu", [step(2, 1.2, 0.8, None)], "", None).guests
    assert found is not None
    assert (found.value, found.low, found.high) == (2, 1, None)


def test_a_refused_step_ends_the_search_with_its_reason() -> None:
    async def measure(number: int) -> DensityStep:
        return replace(step(number, 1, 1, 1), p99_ratio=None, reason="no requests")

    steps, stopped = asyncio.run(search(measure, 8))
    assert stopped == "the p99 of 2 guests has no figure: no requests"
    assert conclude("bare", steps, stopped, None).guests is None
    assert len(conclude("bare", steps, stopped, None).steps) == 1


@pytest.mark.parametrize(("most", "steps"), [(1, 0), (2, 2), (8, 6), (64, 12)])
def test_a_bound_of_the_steps_is_known_before(most: int, steps: int) -> None:
    assert steps_at_most(most) == steps
