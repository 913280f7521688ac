"""One test of a series for a step: its size, its time, its autocorrelation, and its edges."""

from __future__ import annotations

import numpy as np
import pytest
from tests.features.history.drawn import DAY_S, HOUR_S, autoregressive

from nephoscope.stats.change_points import step_test


def hourly(points: int) -> np.ndarray:
    return HOUR_S * np.arange(points, dtype=np.float64)


def test_a_step_is_measured_beside_a_season() -> None:
    rng = np.random.default_rng(1)
    at_s = hourly(192)
    values = 100 + 3 * np.sin(2 * np.pi * at_s / DAY_S) + rng.normal(0, 0.5, at_s.size)
    values[100:] += 5
    test = step_test.step_test(at_s, values)
    assert test.index == 100
    assert test.first <= 100 <= test.last
    assert test.size == pytest.approx(5, abs=4 * test.se)
    assert test.se < 0.4
    assert test.noise_sd == pytest.approx(0.5, rel=0.2)
    assert test.score > 10


def test_the_noise_model_is_not_that_of_the_step() -> None:
    values = np.random.default_rng(2).normal(0, 1, 200)
    values[100:] += 8
    assert step_test.step_test(hourly(200) * 24, values).noise.is_white
    slow = autoregressive(np.random.default_rng(3), 400, 0.8)
    noise = step_test.step_test(hourly(400) * 24, slow).noise
    assert noise.correlation == pytest.approx(0.8, abs=0.12)


def test_a_growth_of_the_noise_is_no_step() -> None:
    rng = np.random.default_rng(6)
    values = rng.standard_normal(130)
    values[110:] *= 6
    at_s = DAY_S * np.arange(130)
    assert step_test.step_test(at_s, values).score < 4
    values[110:] += 30
    assert step_test.step_test(at_s, values).score > 5


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


def test_a_few_outliers_together_are_no_step_and_hide_none() -> None:
    """As a machine has them that is throttled for three minutes, before it is for good."""
    values = np.random.default_rng(7).normal(100, 1, 120)
    values[60:63] -= 40
    at_s = DAY_S * np.arange(120)
    quiet = [step_test.step_test(at_s[:end], values[:end]).score for end in range(63, 121, 3)]
    assert max(quiet) < 4
    values[100:] -= 8
    test = step_test.step_test(at_s[:108], values[:108])
    assert test.index == 100
    assert test.score > 5


def test_a_known_step_is_part_of_the_mean() -> None:
    values = np.random.default_rng(5).normal(0, 1, 150)
    values[70:] += 10
    at_s = hourly(150) * 24
    assert step_test.step_test(at_s, values).index == 70
    assert step_test.step_test(at_s, values, [70]).score < 4
    assert step_test.step_test(at_s, values, between=(80, 120)).index > 80


def test_points_of_any_distance_are_tested() -> None:
    for every_s in (1.0, 3600.0, DAY_S, 30 * DAY_S):
        at_s = every_s * np.arange(step_test.MINIMUM_POINTS)
        assert step_test.is_testable(at_s)
        assert not step_test.is_testable(at_s[1:])
