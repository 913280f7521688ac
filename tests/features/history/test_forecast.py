"""Forecasts of drawn weeks: coverage, season, changes, classes of targets."""

from __future__ import annotations

import numpy as np
import pytest
from tests.features.history.drawn import DAY_S, HOUR_S, START_S, autoregressive, series

from nephoscope.features.history import forecast
from nephoscope.features.history.forecast import CONFIDENCE, Levels
from nephoscope.features.history.series import Series
from nephoscope.results.run_settings import CPU_MODEL

WEEK_POINTS = 7 * 24


def weeks(
    count: int, *, seed: int = 1, correlation: float = 0.3, level: float = 100.0, name: str = "web"
) -> Series:
    """Hourly values with a season of 3 % and a noise of 2 %."""
    points = count * WEEK_POINTS
    noise = autoregressive(np.random.default_rng(seed), points, correlation)
    angle = 2 * np.pi * HOUR_S * np.arange(points) / DAY_S
    values = level * np.exp(0.03 * np.sin(angle) + 0.02 * noise)
    return series(values, facts={0: {CPU_MODEL: f"CPU {level:g}"}}, target=name)


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.6])
def test_intervals_cover_nine_of_ten(correlation: float) -> None:
    hits = [
        hit
        for seed in range(20)
        for hit in forecast._hits([Levels(weeks(5, seed=seed, correlation=correlation), [])])
    ]
    assert len(hits) == 20 * 4 * WEEK_POINTS
    assert 0.87 <= np.mean(hits) <= 0.93


@pytest.mark.slow
def test_intervals_of_a_class_cover_nine_of_ten() -> None:
    hits = [
        hit
        for seed in range(6)
        for hit in forecast._hits(
            [
                Levels(weeks(4, seed=10 * seed + place, level=level, name=f"t{place}"), [])
                for place, level in enumerate((100, 101, 120, 121))
            ]
        )
    ]
    assert 0.87 <= np.mean(hits) <= 0.93


def scheduled(hours: float, how: str, seed: int) -> Series:
    """Values of a schedule with a season of 3 % and a noise of 2 % that remembers an hour.

    how: at equal distances, a quarter of one earlier or later, or a sixth missing.
    """
    rng = np.random.default_rng([round(100 * hours), seed, len(how)])
    points = round(max(6 * 168, 60 * hours) / hours)
    at_s = hours * HOUR_S * np.arange(points)
    if how == "jittered":
        at_s += rng.uniform(-0.25, 0.25, points) * hours * HOUR_S
    noise = autoregressive(rng, points, float(np.exp(-hours)))
    season = 0.03 * np.sin(2 * np.pi * at_s / DAY_S + rng.uniform(0, 2 * np.pi))
    left = np.flatnonzero(rng.random(points) > 1 / 6) if how == "missing" else np.arange(points)
    values = 100 * np.exp(season + 0.02 * noise)
    return series(values[left], at_s=START_S + at_s[left] - at_s.min())


HOURS = (0.25, 0.5, 1, 2, 3, 4, 6, 8, 12, 24)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["regular", "jittered", "missing"])
@pytest.mark.parametrize("hours", HOURS)
def test_intervals_cover_nine_of_ten_at_every_cadence(hours: float, how: str) -> None:
    seeds = 5 if hours < 1 else 20 if hours < 6 else 200
    hits = [
        hit
        for seed in range(seeds)
        for hit in forecast._hits([Levels(scheduled(hours, how, seed), [])])
    ]
    print(f"every {hours} h, {how}: {np.mean(hits):.3f} of {len(hits)}")  # noqa: T201
    assert 0.87 <= np.mean(hits) <= 0.93


@pytest.mark.parametrize("hours", [6, 8, 12])
def test_a_schedule_of_few_times_of_day_is_predicted(hours: float) -> None:
    """Its times tell a sine of half a day from none, or from that of a day, no more."""
    one_series = scheduled(hours, "regular", 1)
    hits = list(forecast._hits([Levels(one_series, [])]))
    assert len(hits) > 50
    assert np.mean(hits) > 0.8
    weeks_ahead = forecast.forecasts([Levels(one_series, [])])
    values = [point.estimate.value for point in one_series.points]
    for week in weeks_ahead:
        low, high = week.estimate.low, week.estimate.high
        assert low is not None
        assert high is not None
        assert 0.9 * min(values) < low < week.estimate.value < high < 1.1 * max(values)
        # Only hours in which it is measured are predicted.
        assert week.start_s != weeks_ahead[0].start_s or week.observed > 0


def watch(seed: int) -> Series:
    """Ten weeks of hourly values: a season, heavy tails, a tenth missing, a day's gap.

    The noise is Student's t with 4 degrees of freedom, of 2 %, with an autocorrelation of 0.3.
    Every third series has a step of 5 % at a random time behind the third week: a change that
    nothing announces is outside the interval until it is detected.
    """
    rng = np.random.default_rng([30, seed])
    points = 10 * WEEK_POINTS
    noise = rng.standard_t(4, points) / np.sqrt(2)
    for index in range(1, points):
        noise[index] = 0.3 * noise[index - 1] + noise[index] * np.sqrt(1 - 0.3**2)
    at_s = HOUR_S * np.arange(points, dtype=np.float64)
    season = 0.03 * np.sin(2 * np.pi * at_s / DAY_S + rng.uniform(0, 2 * np.pi))
    begin = rng.integers(3 * WEEK_POINTS, points) if seed % 3 == 0 else points
    step = 0.05 * (np.arange(points) >= begin)
    gap = rng.integers(0, points - 24)
    kept = (rng.random(points) > 0.1) & ~((np.arange(points) - gap) // 24 == 0)
    values = 100 * np.exp(season + step + 0.02 * noise)
    return series(values[kept], at_s=START_S + at_s[kept])


@pytest.mark.slow
def test_intervals_cover_nine_of_ten_in_watches() -> None:
    classes = [one for seed in range(20) for one in forecast.classes_of([watch(seed)], 0.05)]
    test = forecast.back_test(classes)
    assert test.coverage is not None
    assert test.predictions > 20 * 8 * WEEK_POINTS * 0.8
    assert 0.87 <= test.coverage.value <= 0.93, f"{test.predictions} predictions: {test.coverage}"


def test_the_next_week_is_expected_by_hours_and_the_last_is_beside_its_values() -> None:
    found = forecast.forecasts([Levels(weeks(4), [])])
    assert [one.hours for one in found[:4]] == ["00 to 06", "06 to 12", "12 to 18", "18 to 24"]
    last, following = found[:4], found[4:]
    assert [one.start_s for one in following] == [last[0].end_s] * 4
    assert [one.observed for one in last] == [42] * 4
    assert [one.observed for one in following] == [0] * 4
    assert sum(one.inside for one in last) / 168 > 0.8
    assert all(one.estimate.confidence == CONFIDENCE for one in found)
    middles = [one.estimate.value for one in following]
    assert max(middles) - min(middles) > 2, "the season is in the forecast"
    assert all(one.observed_median is not None for one in last)


def test_a_level_begins_when_its_change_was_detected() -> None:
    levels = Levels(weeks(2), [(100, 110)])
    points = levels.series.points
    assert len(levels.before(points[105].at_s)) == 105
    assert levels.before(points[150].at_s)[0] is points[100]


def test_few_points_are_not_predicted() -> None:
    assert forecast.fit(weeks(1).points[: forecast.MINIMUM_POINTS - 1]) is None
    short = series(np.full(10, 100.0))
    assert forecast.forecasts([Levels(short, [])]) == []
    assert forecast.back_test([[Levels(short, [])]]).coverage is None


def test_a_back_test_counts_values_inside() -> None:
    test = forecast.back_test([[Levels(weeks(3), [])]])
    assert test.predictions == 2 * WEEK_POINTS
    assert test.coverage is not None
    assert 0.8 <= test.coverage.value <= 0.97


def test_a_class_is_the_mixture_of_its_targets() -> None:
    fleet = [weeks(2, seed=place, level=100 + 50 * place, name=f"t{place}") for place in range(2)]
    (levels,) = forecast.classes_of(fleet, 0.05)
    first = forecast.forecasts(levels)[0]
    assert first.of == "2 targets: 1 CPU 100, 1 CPU 150"
    assert first.estimate.low is not None
    assert first.estimate.high is not None
    assert first.estimate.low < 101
    assert first.estimate.high > 149


def test_a_trend_is_extrapolated_where_it_is_certain() -> None:
    values = 100 + np.arange(60.0) + np.random.default_rng(3).normal(0, 0.5, 60)
    rising = series(values, every_s=DAY_S)
    found = forecast.forecasts([Levels(rising, [])])[-1]
    assert found.estimate.value > 161
    noise = series(100 + np.random.default_rng(4).normal(0, 1, 60), every_s=DAY_S)
    flat = forecast.forecasts([Levels(noise, [])])[-1]
    assert flat.estimate.value == pytest.approx(100, abs=1)
