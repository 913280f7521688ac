"""Seasons: which series have one, where weekends lie, and the usual course of a day."""

from __future__ import annotations

import numpy as np
import pytest

from nephoscope.stats.change_points import seasons
from nephoscope.stats.change_points.seasons import DAY_S, WEEK_S

HOUR_S = 3600.0


def hours(count: int) -> np.ndarray:
    return HOUR_S * np.arange(count, dtype=np.float64)


def test_a_season_needs_several_points_a_day_and_three_days() -> None:
    assert not seasons.has_season(DAY_S * np.arange(9.0))
    assert seasons.has_season(hours(9))
    assert [seasons.covers_season(hours(count)) for count in (72, 73)] == [False, True]


def test_weekends_begin_on_saturday() -> None:
    # The epoch began on a Thursday.
    days = [bool(seasons.is_weekend(np.array([day * DAY_S]))[0]) for day in range(7)]
    assert days == [False, False, True, True, False, False, False]


def test_the_usual_course_of_a_day_is_found_where_there_is_one() -> None:
    rng = np.random.default_rng(3)
    at_s = hours(24 * 12)
    noise = rng.normal(0, 1, at_s.size)
    assert seasons.profile(at_s, noise) is None
    course = 5 * np.sin(2 * np.pi * at_s / DAY_S)
    found = seasons.profile(at_s, noise + course)
    assert found is not None
    assert found.at(at_s) == pytest.approx(course, abs=2)


def test_weekends_are_known_after_three_weeks() -> None:
    assert not seasons.knows_weekends(np.array([0.0, 2.9 * WEEK_S]))
    assert seasons.knows_weekends(np.array([0.0, 3 * WEEK_S]))
