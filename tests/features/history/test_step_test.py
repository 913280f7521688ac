"""One test of a series for a step: its size, its time, its autocorrelation, and its edges."""

from __future__ import annotations

import numpy as np
import pytest
from tests.features.history.drawn import DAY_S, HOUR_S, autoregressive

from nephoscope.features.history import step_test


def hourly(points: int) -> np.ndarray:
    return HOUR_S * np.arange(points, dtype=np.float64)


def test_a_step_is_measured_beside_trend_and_season() -> None:
    rng = np.random.default_rng(1)
    at_s = hourly(192)
    values = (
        100
        + 3 * np.sin(2 * np.pi * at_s / DAY_S)
        + 4 * at_s / at_s[-1]
        + rng.normal(0, 0.5, at_s.size)
    )
    values[100:] += 5
    test = step_test.step_test(at_s, values)
    assert test.index == 100
    assert test.first <= 100 <= test.last
    assert test.size == pytest.approx(5, abs=4 * test.se)
    assert test.se < 0.4
    assert test.noise_sd == pytest.approx(0.5, rel=0.2)
    assert test.score > 10


def test_the_autocorrelation_is_not_that_of_the_step() -> None:
    values = np.random.default_rng(2).normal(0, 1, 200)
    values[100:] += 8
    assert abs(step_test.step_test(hourly(200) * 24, values).correlation) < 0.25
    slow = autoregressive(np.random.default_rng(3), 400, 0.8)
    assert step_test.step_test(hourly(400) * 24, slow).correlation == pytest.approx(0.8, abs=0.12)


def test_values_without_noise_have_a_step_or_none() -> None:
    at_s = hourly(60) * 24
    assert step_test.step_test(at_s, np.full(60, 0.1)).score == 0
    values = np.where(np.arange(60) < 30, 0.1, 0.2)
    test = step_test.step_test(at_s, values)
    assert (test.index, test.score) == (30, np.inf)
    assert test.size == pytest.approx(0.1)


def test_one_outlier_is_no_step() -> None:
    values = np.random.default_rng(4).normal(100, 1, 80)
    before = step_test.step_test(hourly(80) * 24, values).score
    values[-3] += 200
    assert step_test.step_test(hourly(80) * 24, values).score < max(before, 3.0) + 1


def test_a_known_step_is_part_of_the_mean() -> None:
    values = np.random.default_rng(5).normal(0, 1, 150)
    values[70:] += 10
    at_s = hourly(150) * 24
    assert step_test.step_test(at_s, values).index == 70
    assert step_test.step_test(at_s, values, [70]).score < 4
    assert step_test.step_test(at_s, values, between=(80, 120)).index > 80


def test_hourly_points_need_days() -> None:
    assert not step_test.is_testable(hourly(step_test.MINIMUM_POINTS))
    assert step_test.is_testable(hourly(73))
    assert step_test.is_testable(DAY_S * np.arange(step_test.MINIMUM_POINTS))
    assert not step_test.is_testable(DAY_S * np.arange(step_test.MINIMUM_POINTS - 1))


def test_autocorrelated_points_are_worth_fewer() -> None:
    assert step_test.effective_points(100, 0.5) == pytest.approx(100 / 3)
    assert step_test.effective_points(100, -0.5) == 100
