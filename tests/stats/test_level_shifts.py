"""Levels of short series: planted ones are located, and one level is rarely split."""

from __future__ import annotations

import numpy as np
import pytest

from nephoscope.stats.level_shifts import FALSE_ALARMS, FEWEST, level_starts


@pytest.mark.parametrize("place", [4, 10, 15])
def test_a_planted_shift_is_located(place: int) -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(0, 0.03, 20) + np.where(np.arange(20) < place, 0.0, 0.7)
    assert level_starts(values) == [0, place]


def test_each_of_several_levels_is_located() -> None:
    values = np.repeat([1.0, 2.0, 4.0], 10) + np.random.default_rng(4).normal(0, 0.05, 30)
    assert level_starts(values) == [0, 10, 20]


def test_equal_values_are_one_level_and_two_exact_levels_are_two() -> None:
    assert level_starts(np.full(20, 3.0)) == [0]
    assert level_starts(np.array([1.0] * 8 + [2.0] * 12)) == [0, 8]


def test_too_few_values_and_small_shifts_are_one_level() -> None:
    few = np.array([1.0] * 4 + [2.0] * (FEWEST - 5))
    assert level_starts(few) == [0]
    many = np.array([1.0] * 10 + [1.05] * 10)
    assert level_starts(many, smallest=0.1) == [0]
    assert level_starts(many, smallest=0.01) == [0, 10]


def test_one_level_is_rarely_split() -> None:
    """Of 150 series 1.5 are expected; 7 or more have a probability of 0.1 % (binomial)."""
    rng = np.random.default_rng(5)
    split = sum(level_starts(rng.normal(0, 1, 12)) != [0] for _ in range(150))
    assert FALSE_ALARMS == 0.01
    assert split < 7
