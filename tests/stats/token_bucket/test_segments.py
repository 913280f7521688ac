"""Plateaus of series whose levels are set."""

from __future__ import annotations

import numpy as np
import pytest

from nephoscope.stats.token_bucket import segments


def _levels(*parts: tuple[int, float], sigma: float = 1.0) -> np.ndarray:
    draws = np.random.default_rng(5)
    return np.concatenate([level + draws.normal(0, sigma, width) for width, level in parts])


def test_steps_are_at_their_points() -> None:
    values = _levels((80, 100.0), (60, 70.0), (40, 90.0))
    parts = segments.plateaus(values, segments.noise_of(values), 3)
    assert [part.first for part in parts] == [0, 80, 140]
    assert [part.last for part in parts] == [80, 140, 180]
    assert [part.level for part in parts] == pytest.approx([100, 70, 90], abs=0.5)
    assert sum(part.width for part in parts) == values.size


def test_noise_alone_is_one_plateau() -> None:
    values = _levels((300, 100.0))
    (part,) = segments.plateaus(values, segments.noise_of(values), 3)
    assert part.width == 300


def test_the_noise_is_that_about_the_steps() -> None:
    values = _levels((200, 100.0), (200, 20.0), sigma=2.0)
    assert segments.noise_of(values) == pytest.approx(2.0, rel=0.15)
    # A counter's resolution is the least noise, also of a series that never changes.
    assert segments.noise_of(np.full(50, 100.0)) == pytest.approx(0.1)


def test_outliers_are_replaced_and_steps_stay() -> None:
    values = np.concatenate([np.full(20, 100.0), np.full(20, 50.0)])
    spoiled = values.copy()
    spoiled[7] = 500.0
    assert segments.without_outliers(spoiled, 1.0).tolist() == values.tolist()


def test_small_steps_are_merged() -> None:
    values = _levels((50, 100.0), (50, 99.0), (50, 60.0), sigma=0.1)
    parts = segments.plateaus(values, 0.1, 3)
    assert len(parts) == 3
    assert [part.first for part in segments.merged(parts, values, 10.0)] == [0, 100]


def test_long_series_are_thinned_to_medians() -> None:
    times = np.arange(5000.0)
    short, levels, group = segments.thinned(times, times * 2, most=1000)
    assert (short.size, levels.size, group) == (1000, 1000, 5)
    assert levels[0] == 4.0  # the median of 0, 2, 4, 6, 8
    assert segments.thinned(times, times, most=5000)[2] == 1
