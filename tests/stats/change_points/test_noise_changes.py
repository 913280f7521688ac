"""Changes of noise: found, measured, and none where the noise follows the hours of the day."""

from __future__ import annotations

import numpy as np
from tests.features.history.cases import noisy_office_hours
from tests.features.history.drawn import DAY_S
from tests.rates import holds_rate

from nephoscope.stats.change_points import noise_changes


def test_intervals_of_a_ratio_hold_it() -> None:
    rng = np.random.default_rng(31)
    at_s = DAY_S * np.arange(160)
    held = []
    for _ in range(40):
        values = rng.standard_normal(160)
        values[80:] *= 5
        for one in noise_changes.detect(at_s, values, [], false_alarms=0.05):
            assert one.before < one.behind
            held.append(one.low <= 5 <= one.high)
    assert len(held) > 30
    holds_rate("ratio of noise in its interval", held, 0.85)


def test_noise_that_falls_and_noise_that_stays() -> None:
    rng = np.random.default_rng(32)
    values = rng.standard_normal(160)
    assert not noise_changes.detect(DAY_S * np.arange(160), values, [], false_alarms=0.05)
    values[:80] *= 8
    (fall,) = noise_changes.detect(DAY_S * np.arange(160), values, [], false_alarms=0.05)
    assert fall.high < 1


def test_noisy_office_hours_are_no_change_of_noise() -> None:
    rng = np.random.default_rng(33)
    for _ in range(3):
        at_s, values = noisy_office_hours(rng)
        assert not noise_changes.detect(at_s, values, [], false_alarms=0.05)


def test_a_level_that_changes_is_no_change_of_noise() -> None:
    values = np.random.default_rng(34).standard_normal(160)
    values[100:] += 20
    assert not noise_changes.detect(DAY_S * np.arange(160), values, [100], false_alarms=0.05)
