"""Drawn series on which change points are judged: stationary ones, and one with a step.

benchmarks/change_points_vs_otava.py counts alarms on the same series.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tests.features.history.drawn import DAY_S, HOUR_S, autoregressive

from nephoscope.features.history.change_points import WINDOW, DetectedStep
from nephoscope.stats.statistics.values import Array

SERIES = 1000
STEP_AT = 120
Drawing = Callable[[np.random.Generator], tuple[Array, Array]]


def hourly(points: int = WINDOW) -> Array:
    return HOUR_S * np.arange(points, dtype=np.float64)


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
}


def stepped(rng: np.random.Generator, correlation: float = 0.0) -> tuple[Array, Array]:
    """A step of 5 % at a noise of 2 %, and the ten points behind it."""
    values = 1 + 0.02 * autoregressive(rng, STEP_AT + 10, correlation)
    values[STEP_AT:] += 0.05
    return hourly(STEP_AT + 10), values


def is_step(steps: list[DetectedStep]) -> bool:
    """Whether the step is among these."""
    return any(abs(one.index - STEP_AT) <= 10 for one in steps)
