"""Series of rates with a known truth: token buckets, and what is none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nephoscope.stats.statistics.values import Array

BURST = 100.0


@dataclass(frozen=True)
class Bucket:
    """A bucket that starts full, under a load that takes what it gets. pauses: (start, length), s,
    in which credit comes back at `refill` a second."""

    baseline: float
    credit: float
    refill: float
    pauses: tuple[tuple[float, float], ...] = ()

    def delivered(self, duration_s: float, step_s: float = 0.25) -> tuple[Array, float]:
        """Rate at every step, and the moment at which the credit was used up first."""
        left, knee = self.credit, float("nan")
        rates = np.zeros(round(duration_s / step_s))
        for number in range(rates.size):
            at = number * step_s
            if any(start <= at < start + length for start, length in self.pauses):
                left = min(self.credit, left + self.refill * step_s)
                continue
            wanted = (BURST - self.baseline) * step_s
            used = min(left, wanted)
            left -= used
            rates[number] = self.baseline + used / step_s
            if used < wanted and np.isnan(knee):
                knee = at
        return rates, knee


def noise(draws: np.random.Generator, n: int, cv: float, correlation: float = 0.0) -> Array:
    """Factors about 1: a first-order autoregression of a standard deviation `cv`."""
    shocks = draws.normal(0, cv * np.sqrt(1 - correlation**2), n)
    values = np.empty(n)
    values[0] = draws.normal(0, cv)
    for at in range(1, n):
        values[at] = correlation * values[at - 1] + shocks[at]
    return np.maximum(1 + values, 0.01)


@dataclass(frozen=True)
class Drawn:
    """A series and its truth; knee None where there is no bucket."""

    at_s: Array
    rates: Array
    bucket: Bucket | None = None
    knee_s: float | None = None
    interval_s: float = 1.0


def bucket_series(
    draws: np.random.Generator,
    *,
    depth: float | None = None,
    cycles: int = 0,
    cv: float | None = None,
) -> Drawn:
    """A bucket as somebody would measure it: noise that depends on itself, outliers, points that
    are missing, times that jitter."""
    n = int(draws.integers(120, 600))
    interval = 1.0
    depth = float(draws.uniform(0.2, 0.9)) if depth is None else depth
    cv = float(np.exp(draws.uniform(np.log(0.002), np.log(0.05)))) if cv is None else cv
    knee = float(draws.uniform(0.15, 0.6 if cycles else 0.85)) * n
    baseline = BURST * (1 - depth)
    pauses = []
    at = knee + draws.uniform(0.05, 0.1) * n
    for _ in range(cycles):
        length = float(draws.uniform(0.03, 0.06)) * n
        pauses.append((at, length))
        at += length + draws.uniform(0.08, 0.12) * n
    credit = knee * (BURST - baseline)
    # A pause gives back some of it, which a burst then uses up before the next one.
    refill = draws.uniform(0.5, 1.0) * baseline if cycles else baseline
    refill = min(refill, (BURST - baseline) * 1.2)
    made = Bucket(baseline, credit, float(refill), tuple(pauses))
    fine, exact = made.delivered(n * interval)
    rates = fine.reshape(n, -1).mean(axis=1)
    rates = rates * noise(draws, n, cv, float(draws.uniform(0, 0.6)))
    outliers = draws.random(n) < 0.005
    rates[outliers] *= draws.uniform(0.2, 1.5, int(outliers.sum()))
    times = np.arange(n) * interval + draws.uniform(0, 0.2, n)
    # Missing points, and one longer gap under load.
    present = draws.random(n) > 0.02
    hole = int(draws.integers(0, n - 10))
    if draws.random() < 0.3 and abs(hole - exact) > 25 and not cycles:
        present[hole : hole + 8] = False
    return Drawn(times[present], rates[present], made, exact, interval)


def steady(draws: np.random.Generator) -> Drawn:
    n = int(draws.integers(60, 1000))
    cv = float(np.exp(draws.uniform(np.log(0.001), np.log(0.1))))
    return Drawn(np.arange(n) * 1.0, BURST * noise(draws, n, cv, float(draws.uniform(0, 0.95))))


def drifting(draws: np.random.Generator) -> Drawn:
    n = int(draws.integers(60, 1000))
    line = 1 - draws.uniform(-0.5, 0.5) * np.linspace(0, 1, n)
    return Drawn(np.arange(n) * 1.0, BURST * line * noise(draws, n, 0.02, 0.3))


def daily(draws: np.random.Generator) -> Drawn:
    n = int(draws.integers(200, 1440))
    phase, periods = draws.uniform(0, 2 * np.pi), draws.uniform(0.5, 4)
    wave = 1 - draws.uniform(0.05, 0.3) * (
        1 + np.sin(phase + np.linspace(0, 2 * np.pi * periods, n))
    )
    return Drawn(np.arange(n) * 60.0, BURST * wave * noise(draws, n, 0.02, 0.3))


def square_wave(draws: np.random.Generator) -> Drawn:
    """A neighbour that comes and goes, at least twice."""
    n = int(draws.integers(100, 1000))
    period = n / draws.uniform(2.2, 12)
    on = ((np.arange(n) + draws.uniform(0, period)) % period) < draws.uniform(0.3, 0.7) * period
    level = np.where(on, 1 - draws.uniform(0.1, 0.6), 1.0)
    return Drawn(np.arange(n) * 1.0, BURST * level * noise(draws, n, 0.02, 0.3))


def telegraph(draws: np.random.Generator) -> Drawn:
    """Neighbours that come and go at random, several times."""
    n = int(draws.integers(200, 1000))
    state, level = False, np.ones(n)
    depth = draws.uniform(0.1, 0.5)
    for at in range(n):
        if draws.random() < 12 / n:
            state = not state
        level[at] = 1 - depth * state
    level[: n // 20] = 1 - depth
    return Drawn(np.arange(n) * 1.0, BURST * level * noise(draws, n, 0.03, 0.3))


def thermal(draws: np.random.Generator) -> Drawn:
    """A clock that falls as the machine warms up: up to 12 % at once, or more over time."""
    n = int(draws.integers(100, 1000))
    at = np.arange(n)
    if draws.random() < 0.5:
        level = np.where(at > draws.uniform(0.05, 0.3) * n, 1 - draws.uniform(0.03, 0.12), 1.0)
    else:
        level = 1 - draws.uniform(0.1, 0.3) * (1 - np.exp(-at / (n * draws.uniform(0.08, 0.3))))
    return Drawn(at * 1.0, BURST * level * noise(draws, n, 0.01, 0.3))


def dips(draws: np.random.Generator) -> Drawn:
    """Short stalls, and values far from all."""
    n = int(draws.integers(100, 1000))
    rates = BURST * noise(draws, n, 0.02, 0.3)
    for start in draws.integers(0, n, int(draws.integers(1, 6))):
        rates[start : start + int(draws.integers(1, 4))] *= draws.uniform(0.1, 0.7)
    return Drawn(np.arange(n) * 1.0, rates)


def paused(draws: np.random.Generator) -> Drawn:
    """A steady rate under a load that pauses."""
    n = int(draws.integers(100, 1000))
    rates = BURST * noise(draws, n, 0.02, 0.3)
    for start in draws.integers(5, n, 4):
        rates[start : start + int(draws.integers(5, 20))] = 0.0
    return Drawn(np.arange(n) * 1.0, rates)


NO_BUCKETS = (steady, drifting, daily, square_wave, telegraph, thermal, dips, paused)
