"""The cells of the accuracy map: generator x n x autocorrelation x noise x statistic.

A cell counts, over samples whose truth is known, how often the 95 % interval holds the truth, how
wide it is against the one that the true spread of the estimate would give, how often it is more
than three times as wide, how often dependence is told, and how often a difference is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nephoscope.stats import compare, stopping
from nephoscope.stats.statistics import dependence, estimates, means
from nephoscope.stats.statistics.ratios import p_welch
from nephoscope.stats.statistics.values import Array

Z = 1.959964
WIDE = 3.0
SERIES = 20
EFFECT = 2.8
"""Difference in standard errors of a mean of n normal values against another: Welch's power is near
80 %."""
PARETO = 2.5


@dataclass(frozen=True)
class Answer:
    """What one sample gives. low, high: None without an interval. told: a sentence on dependence.
    found, welch: whether a planted difference is found, and whether Welch's test finds it."""

    value: float
    low: float | None
    high: float | None
    told: bool = False
    found: bool | None = None
    welch: bool | None = None


@dataclass(frozen=True)
class Cell:
    """A cell of the map; truth: of the estimate. ratio: it is told on logarithms."""

    statistic: str
    noise: str
    n: int
    rho: float
    truth: float
    answer: Callable[[np.random.Generator], Answer]
    ratio: bool = False

    def counted(self, samples: int, seed: int) -> dict[str, Any]:
        """Returns the row of the map over so many samples."""
        name = f"{self.statistic} {self.noise} {self.n} {self.rho}"
        rng = np.random.default_rng([seed, *name.encode()])
        answers = [self.answer(rng) for _ in range(samples)]
        given = [one for one in answers if one.low is not None and one.high is not None]
        scale: Callable[[Any], Array] = np.log if self.ratio else np.asarray
        oracle = Z * float(np.std(scale([one.value for one in answers])))
        highs, lows = (np.array([getattr(one, end) for one in given]) for end in ("high", "low"))
        widths = (scale(highs) - scale(lows)) / 2 / oracle
        right = int(np.sum((lows <= self.truth) & (self.truth <= highs)))
        row: dict[str, Any] = {
            "statistic": self.statistic,
            "noise": self.noise,
            "n": self.n,
            "autocorrelation": self.rho,
            "samples": samples,
            "intervals": len(given),
            "right": right,
            "width": round(float(np.mean(widths)), 3),
            "wide": int(np.sum(widths > WIDE)),
            "told": sum(one.told for one in answers),
        }
        if answers[0].found is not None:
            row["found"] = sum(bool(one.found) for one in answers)
            row["welch"] = sum(bool(one.welch) for one in answers)
        return row


def ar1(rng: np.random.Generator, sides: int, n: int, rho: float) -> Array:
    """Stationary first-order autoregressions of unit variance; shape (sides, n)."""
    rows = rng.standard_normal((sides, n))
    for i in range(1, n):
        rows[:, i] = rho * rows[:, i - 1] + math.sqrt(1 - rho**2) * rows[:, i]
    return rows


NOISES: dict[str, Callable[[Array], Array]] = {
    "normal 5 %": lambda z: 1 + 0.05 * z,
    "log-normal 0.5": lambda z: np.exp(0.5 * z),
    "whole numbers": lambda z: np.round(10 + z),
}
TRUTHS = {"normal 5 %": 1.0, "log-normal 0.5": 1.0, "whole numbers": 10.0}


def of_median(values: Array, q: float = 0.5, prior: Array = dependence.ASSUMED) -> Answer:
    """Returns what is told of the quantile of a lone series."""
    found = estimates.quantile(values, q, unit="", prior=prior)
    return Answer(found.value, found.low, found.high, dependence.DEPENDENT in found.note)


def of_ratio(a: Array, b: Array, *, paired: bool, prior: Array = dependence.ASSUMED) -> Answer:
    """Returns what is told of a ratio, and of one whose second side is larger."""
    value, band = compare.ratio_interval(a, b, paired=paired, prior=prior)
    series = [np.log(b / a)] if paired else [np.log(a), np.log(b)]
    told = any(
        dependence.sentence(one, dependence.posterior(one, prior), series=len(series))
        for one in series
    )
    ends = (band.low, band.high) if math.isfinite(band.high) else (None, None)
    found = welch = None
    if not paired:
        by = math.exp(EFFECT * math.sqrt(2 / a.size) * float(SPREADS[0]))
        shifted = np.array([band.low * by, band.high * by])
        found = bool(shifted[0] > 1 or shifted[1] < 1)
        p = p_welch(np.log(a), np.log(b * by))
        welch = p is not None and p < 0.05
    return Answer(value, *ends, told, found, welch)


SPREADS = [0.05]
"""Standard deviation of the logarithms in the cells that count power."""


def stopped(values: Array) -> Answer:
    """Returns the median at which the stopping rule ends."""
    for n in range(stopping.LEAST_N, values.size + 1, stopping.DEFAULT_INTERVAL_N):
        stop = stopping.decide(values[:n], n_max=values.size)
        if stop.stops and stop.estimate is not None:
            one = stop.estimate
            return Answer(one.value, one.low, one.high, dependence.DEPENDENT in one.note)
    raise AssertionError("a run ends at n_max")


def of_run(rng: np.random.Generator, n: int, odd: float, *, first: bool, paired: bool) -> Answer:
    """Returns what is told of one of SERIES series of a run, all independent but the first."""
    rows = np.concatenate([ar1(rng, 1, n, odd), ar1(rng, SERIES - 1, n, 0)])
    prior = dependence.pooled([row] for row in rows)
    values = 1 + 0.05 * rows[0 if first else 1]
    if paired:
        return of_ratio(np.ones(n), values, paired=True, prior=prior)
    return of_median(values, prior=prior)


def of_mean(values: Array) -> Answer:
    """Returns what is told of a mean."""
    found = means.mean_of_skewed(values, unit="")
    return Answer(found.value, found.low, found.high)


MEANS: dict[str, tuple[float, Callable[[np.random.Generator, int], Array]]] = {
    "normal": (10.0, lambda rng, n: rng.normal(10, 1, n)),
    "exponential": (1.0, lambda rng, n: rng.exponential(1, n)),
    "log-normal 1": (math.exp(0.5), lambda rng, n: rng.lognormal(0, 1, n)),
    "Pareto 2.5": (PARETO / (PARETO - 1), lambda rng, n: 1 + rng.pareto(PARETO, n)),
}


def _series(noise: str, n: int, rho: float) -> Iterator[Cell]:
    shape, truth = NOISES[noise], TRUTHS[noise]

    def drawn(rng: np.random.Generator) -> Array:
        return shape(ar1(rng, 2, n, rho))

    yield Cell("median", noise, n, rho, truth, lambda rng: of_median(drawn(rng)[0]))
    for statistic, paired in (("paired ratio", True), ("unpaired ratio", False)):
        if paired and noise == "normal 5 %":
            # As a program against a constant one: the ratios have the noise of one side.
            def answer(rng: np.random.Generator) -> Answer:
                return of_ratio(np.ones(n), drawn(rng)[0], paired=True)
        else:

            def answer(rng: np.random.Generator, paired: bool = paired) -> Answer:
                return of_ratio(*drawn(rng), paired=paired)

        yield Cell(statistic, noise, n, rho, 1.0, answer, ratio=True)


def cells() -> Iterator[Cell]:
    """Yields all cells of the map."""
    for noise in ("normal 5 %", "log-normal 0.5"):
        for n in (10, 20, 30):
            for rho in (0.0, 0.3, 0.6, 0.8):
                yield from _series(noise, n, rho)
    yield from _series("normal 5 %", 6, 0.0)
    for n in (10, 20):
        yield from _series("whole numbers", n, 0.0)
    yield from _others()
    yield from _runs()
    for noise, (truth, draw) in MEANS.items():
        for n in (10, 30):
            yield Cell(
                "mean", noise, n, 0.0, truth, lambda rng, n=n, draw=draw: of_mean(draw(rng, n))
            )


def _others() -> Iterator[Cell]:
    for rho in (0.0, 0.6, 0.8):
        yield Cell(
            "p90",
            "normal 5 %",
            40,
            rho,
            1 + 0.05 * 1.2815515655,
            lambda rng, rho=rho: of_median(1 + 0.05 * ar1(rng, 1, 40, rho)[0], 0.9),
        )
    for rho in (0.0, 0.6):
        yield Cell(
            "median after the stopping rule",
            "normal 3 %",
            100,
            rho,
            1.0,
            lambda rng, rho=rho: stopped(1 + 0.03 * ar1(rng, 1, 100, rho)[0]),
        )


def _runs() -> Iterator[Cell]:
    for statistic, paired in (("median", False), ("paired ratio", True)):
        for n in (10, 20):
            for odd in (0.0, 0.6, 0.8):
                yield Cell(
                    f"{statistic} in a run of {SERIES}",
                    "normal 5 %",
                    n,
                    odd,
                    1.0,
                    lambda rng, n=n, odd=odd, paired=paired: of_run(
                        rng, n, odd, first=True, paired=paired
                    ),
                    ratio=paired,
                )
