"""Change points of drawn series: found, placed, and rarely where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from tests.features.history.cases import SEED, SERIES, STATIONARY, STEP_AT, hourly, is_step, stepped
from tests.features.history.drawn import DAY_S, HOUR_S, autoregressive
from tests.rates import holds_rate

from nephoscope.stats.change_points import detection
from nephoscope.stats.change_points.detection import WINDOW, Detector, detect
from nephoscope.stats.change_points.noise import WHITE, NoiseModel


@pytest.mark.slow
@pytest.mark.parametrize("kind", STATIONARY)
def test_stationary_series_rarely_have_a_change_point(kind: str) -> None:
    rng = np.random.default_rng([SEED, list(STATIONARY).index(kind)])
    quiet = [not detect(*STATIONARY[kind](rng)) for _ in range(SERIES)]
    holds_rate(f"no alarm, {kind}", quiet, 1 - detection.FALSE_ALARMS)


@pytest.mark.slow
def test_a_step_is_found_within_ten_points() -> None:
    rng = np.random.default_rng([SEED, 100])
    holds_rate("step found", [is_step(detect(*stepped(rng))) for _ in range(SERIES)], 0.9)


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_intervals_of_a_step_hold_its_size(correlation: float) -> None:
    rng = np.random.default_rng(13)
    right = []
    for _ in range(200):
        values = 1 + 0.02 * autoregressive(rng, WINDOW, correlation)
        values[100:] += 0.1
        steps = [one for one in detect(hourly(), values) if abs(one.index - 100) <= 10]
        right += [one.low <= 0.1 <= one.high for one in steps[:1]]
    assert len(right) > 100
    holds_rate(f"size in its interval, AR(1) {correlation:g}", right, 0.9)


def test_a_step_is_found_with_its_time_and_size() -> None:
    rng = np.random.default_rng(20)
    values = 1 + 0.02 * rng.standard_normal(160)
    values[STEP_AT:] += 0.08
    (change,) = detect(hourly(160), values)
    assert change.first <= STEP_AT <= change.last
    assert abs(change.index - STEP_AT) <= 1
    assert STEP_AT < change.detected <= STEP_AT + 10
    assert change.low <= 0.08 <= change.high
    assert change.low > 0
    assert change.false_alarms == 0.01


def test_two_steps_are_two_changes_and_the_rest_none() -> None:
    rng = np.random.default_rng(21)
    values = 1 + 0.01 * rng.standard_normal(180)
    values[70:] += 0.1
    values[130:] -= 0.1
    changes = detect(DAY_S * np.arange(180), values)
    assert [round(one.size, 1) for one in changes] == [0.1, -0.1]
    assert [abs(one.index - at) <= 1 for one, at in zip(changes, (70, 130), strict=True)]
    assert not detect(DAY_S * np.arange(180), 1 + 0.01 * rng.standard_normal(180))


@pytest.mark.parametrize(
    ("steps", "wanted"),
    [((20, 32), [20, 32]), ((14, 27), [27]), ((20,), [20]), ((), [])],
)
def test_steps_of_a_short_series_do_not_hide_each_other(
    steps: tuple[int, ...], wanted: list[int]
) -> None:
    """None is reported in the first 20 points, but the one behind it is."""
    rng = np.random.default_rng(22)
    values = 1 + 0.01 * rng.standard_normal(40)
    for step in steps:
        values[step:] *= 1.2
    changes = detect(DAY_S * np.arange(40), np.log(values))
    assert [one.index for one in changes] == wanted


def test_season_trend_and_outliers_are_no_change() -> None:
    rng = np.random.default_rng(22)
    at_s = hourly()
    values = 3 * np.sin(2 * np.pi * at_s / DAY_S) + at_s / at_s[-1] * 5 + rng.normal(size=WINDOW)
    values[[40, 90, 91, 150]] += 30
    assert not detect(at_s, values)


def test_short_series_have_no_change_points() -> None:
    assert not detect(hourly(10), np.r_[np.zeros(5), np.ones(5)])
    assert not detect(np.array([]), np.array([]))


def test_the_threshold_falls_with_the_rate() -> None:
    for noise in (WHITE, NoiseModel(0.6)):
        rates = [detection.threshold(noise, rate) for rate in (0.01, 0.03, 0.2)]
        assert rates == sorted(rates, reverse=True)
        for rate in (0.01, 0.05, 0.2):
            above = detection.threshold(noise, rate) + 1e-6
            assert detection.false_alarm_rate(noise, above) == rate


def test_a_step_of_any_size_has_its_size() -> None:
    rng = np.random.default_rng(23)
    for factor in (0.3, 10.0):
        values = 1 + 0.002 * rng.standard_normal(200)
        values[120:] *= factor
        (change,) = detect(60.0 * np.arange(200), np.log(values))
        assert change.low <= np.log(factor) <= change.high
        assert change.detected <= 120 + 10


@pytest.mark.parametrize("every_s", [1.0, 300.0, DAY_S, 30 * DAY_S])
def test_a_step_is_found_at_every_cadence(every_s: float) -> None:
    rng = np.random.default_rng(24)
    values = 1 + 0.02 * rng.standard_normal(160)
    values[100:] += 0.08
    changes = detect(every_s * np.arange(160), values)
    assert [abs(one.index - 100) <= 2 for one in changes] == [True]


def test_a_small_step_of_a_long_series_is_found_in_medians() -> None:
    rng = np.random.default_rng(25)
    values = rng.standard_normal(2400)
    values[1500:] += 0.6
    (change,) = detect(60.0 * np.arange(2400), values)
    assert change.merged > 1
    assert change.first <= 1500 <= change.last
    assert change.low <= 0.6 <= change.high


def test_the_usual_day_of_a_dense_series_is_no_change() -> None:
    rng = np.random.default_rng(26)
    at_s = 1200.0 * np.arange(3 * 24 * 6)
    office = (at_s % DAY_S >= 8 * HOUR_S) & (at_s % DAY_S < 18 * HOUR_S)
    values = rng.standard_normal(at_s.size) + 5 * office
    assert not detect(at_s, values)
    values[230:] += 5
    assert [abs(one.index - 230) <= 3 for one in detect(at_s, values)] == [True]


def test_a_point_that_is_added_is_tested_as_in_the_whole() -> None:
    rng = np.random.default_rng(27)
    values = rng.standard_normal(150)
    values[100:] += 4
    at_s = DAY_S * np.arange(150)
    detector = Detector()
    for place in range(150):
        detector.add(at_s[place : place + 1], values[place : place + 1])
    assert detector.steps() == detect(at_s, values)


def test_shocks_that_come_again_are_no_steps() -> None:
    """As the balance of an account has them: it jumps once a month and falls until the next."""
    rng = np.random.default_rng(28)
    shocks = np.cumsum(rng.integers(24, 32, 9))
    values = np.zeros(240)
    for place in range(1, 240):
        values[place] = 0.95 * values[place - 1] + 0.006 * rng.standard_normal()
        values[place] += 0.12 * (place in shocks)
    # The first ones are alone in the points before them.
    assert all(one.index < shocks[2] for one in detect(DAY_S * np.arange(240), values))
