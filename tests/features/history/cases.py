"""Drawn series on which change points are judged: without a change of level, and with a step.

benchmarks/change_points_vs_otava.py counts alarms on the same series.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tests.features.history.drawn import DAY_S, HOUR_S, START_S, autoregressive

from nephoscope.stats.change_points.detection import WINDOW, DetectedStep
from nephoscope.stats.statistics.values import Array

SERIES = 1000
STEP_AT = 120
Drawing = Callable[[np.random.Generator], tuple[Array, Array]]


def hourly(points: int = WINDOW) -> Array:
    return HOUR_S * np.arange(points, dtype=np.float64)


def daily() -> Array:
    return START_S + DAY_S * np.arange(WINDOW, dtype=np.float64)


def noisy(correlation: float) -> Drawing:
    return lambda rng: (hourly(), autoregressive(rng, WINDOW, correlation))


def seasonal(rng: np.random.Generator) -> tuple[Array, Array]:
    at_s = hourly()
    phase = rng.uniform(0, 2 * np.pi)
    return at_s, 3 * np.sin(2 * np.pi * at_s / DAY_S + phase) + rng.normal(size=WINDOW)


def heavy(rng: np.random.Generator) -> tuple[Array, Array]:
    return hourly(), rng.standard_t(2.5, WINDOW)


def missing(rng: np.random.Generator) -> tuple[Array, Array]:
    kept = np.sort(rng.permutation(WINDOW)[: WINDOW * 9 // 10])
    return hourly()[kept], autoregressive(rng, WINDOW, 0.3)[kept]


def noisier(factor: float) -> Drawing:
    """The noise grows by a factor at a random time and stays."""

    def draw(rng: np.random.Generator) -> tuple[Array, Array]:
        values = rng.normal(size=WINDOW)
        values[rng.integers(60, 140) :] *= factor
        return daily(), values

    return draw


def noisy_spell(rng: np.random.Generator) -> tuple[Array, Array]:
    """Thirty points of four times the noise."""
    values = rng.normal(size=WINDOW)
    start = rng.integers(60, 140)
    values[start : start + 30] *= 4
    return daily(), values


def noisy_office_hours(rng: np.random.Generator) -> tuple[Array, Array]:
    """Three times the noise from 8 to 18 o'clock."""
    at_s = hourly()
    hour = at_s % DAY_S / HOUR_S
    return at_s, rng.normal(size=WINDOW) * np.where((hour >= 8) & (hour < 18), 3.0, 1.0)


def weekend(at_s: Array) -> Array:
    """Whether a time is on a Saturday or Sunday in UTC; the epoch began on a Thursday."""
    return np.asarray((at_s // DAY_S + 3) % 7 >= 5)


def weekend_level(rng: np.random.Generator) -> tuple[Array, Array]:
    """Three standard deviations less on Saturdays and Sundays, from a random day on."""
    at_s = hourly() + DAY_S * rng.integers(0, 7)
    return at_s, rng.normal(size=WINDOW) - 3.0 * weekend(at_s)


def slow_wave(rng: np.random.Generator) -> tuple[Array, Array]:
    """A wave of 60 to 150 points and twice the amplitude of the noise."""
    turn = 2 * np.pi * np.arange(WINDOW) / rng.uniform(60, 150) + rng.uniform(0, 2 * np.pi)
    return daily(), 2 * np.sin(turn) + rng.normal(size=WINDOW)


def flicker(rng: np.random.Generator) -> tuple[Array, Array]:
    """Noise whose power falls with its frequency (1/f)."""
    points = 4 * WINDOW
    spectrum = np.fft.rfft(rng.normal(size=points))
    spectrum[1:] /= np.sqrt(np.arange(1, spectrum.size))
    spectrum[0] = 0.0
    values = np.fft.irfft(spectrum, points)[:WINDOW]
    return daily(), values / values.std()


SEED = 11
"""Nothing was fitted with it."""

STATIONARY: dict[str, Drawing] = {
    "AR(1) 0": noisy(0.0),
    "AR(1) 0.3": noisy(0.3),
    "AR(1) 0.6": noisy(0.6),
    "AR(1) 0.9": noisy(0.9),
    "daily season": seasonal,
    "heavy tails": heavy,
    "10 % missing": missing,
    "noise grows to 2 times": noisier(2.0),
    "noise grows to 4 times": noisier(4.0),
    "noisy spell": noisy_spell,
    "noisy office hours": noisy_office_hours,
    "weekend level": weekend_level,
    "slow wave": slow_wave,
    "1/f noise": flicker,
}


def stepped(rng: np.random.Generator, correlation: float = 0.0) -> tuple[Array, Array]:
    """A step of 5 % at a noise of 2 %, and the ten points behind it."""
    values = 1 + 0.02 * autoregressive(rng, STEP_AT + 10, correlation)
    values[STEP_AT:] += 0.05
    return hourly(STEP_AT + 10), values


def is_step(steps: list[DetectedStep]) -> bool:
    """Whether the step is among these."""
    return any(abs(one.index - STEP_AT) <= 10 for one in steps)
