"""The cases in which intervals are counted: how often do they hold a truth that is known?

The tests hold every case to its bound; `benchmarks/interval_coverage.py` writes the counts that the
page *How we measure* shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nephoscope.core.model import Better, Estimate
from nephoscope.features.comparison import between_runs
from nephoscope.features.comparison.prior import priors
from nephoscope.stats import compare, stopping
from nephoscope.stats.statistics import dependence, estimates, histograms, means
from nephoscope.stats.verdicts import Band

from .series import ar1

Answer = Estimate | Band | None
"""An interval."""

P90 = 1.2815515655
SEED = 31_415
"""Of the tests. The published counts have another one, which no constant was fitted with."""


@dataclass(frozen=True)
class Case:
    """A statistic of a sample and how often its 95 % interval has to hold the truth.

    answer: of a sample drawn with a generator. rho: the autocorrelation of the sample, None where
    it is made of something else.
    """

    statistic: str
    n: str
    rho: float | None
    promised: float
    truth: float
    answer: Callable[[np.random.Generator], Answer]

    @property
    def name(self) -> str:
        """Names the case in test output."""
        dependent = "" if self.rho is None else f", AR(1) {self.rho}"
        return f"{self.statistic}, n = {self.n}{dependent}"

    def counted(self, samples: int, seed: int) -> list[bool]:
        """Returns, for each of so many samples, whether the interval is right."""
        rng = np.random.default_rng([seed, samples, *self.name.encode()])
        return [self._right(self.answer(rng)) for _ in range(samples)]

    def _right(self, interval: Answer) -> bool:
        if interval is None or (interval.low is None and interval.high is None):
            return False
        low, high = interval.low, interval.high
        return (low is None or low <= self.truth) and (high is None or self.truth <= high)


def _median(row: dependence.Array) -> Answer:
    return estimates.median(row, unit="")


def _p90(row: dependence.Array) -> Answer:
    return estimates.quantile(row, 0.9, unit="")


def _paired(row: dependence.Array) -> Answer:
    return compare.ratio_interval(np.ones(row.size), row, paired=True)[1]


def _unpaired(rows: dependence.Array) -> Answer:
    return compare.ratio_interval(*rows)[1]


def _stopped(row: dependence.Array) -> Answer:
    for n in range(stopping.LEAST_N, row.size + 1, stopping.DEFAULT_INTERVAL_N):
        stop = stopping.decide(row[:n], n_max=row.size)
        if stop.stops:
            assert stop.estimate is not None
            return stop.estimate
    raise AssertionError("a run ends at n_max")


def _difference(rng: np.random.Generator) -> Answer:
    a, b = rng.normal(100, 1, 30), rng.normal(100, 15, 6)
    return compare.independent(a, b, better=Better.LOWER).difference


def _merged(trials: int) -> Callable[[np.random.Generator], Answer]:
    def answer(rng: np.random.Generator) -> Answer:
        requests = np.exp(rng.normal(0, 0.15, (trials, 1)) + rng.normal(0, 0.3, (trials, 200)))
        counted = [(row, np.ones(200, np.int64)) for row in requests]
        return histograms.quantile_of_trials(counted, 0.9, unit="")

    return answer


def _separate(earlier: int) -> Callable[[np.random.Generator], Answer]:
    def answer(rng: np.random.Generator) -> Answer:
        runs = np.exp(rng.normal(0, 0.03, (7, 1)) + rng.normal(0, 0.01, (7, 20)))
        history = np.median(runs[2:], axis=1)[:earlier]
        found = between_runs.separate_runs(
            runs[0],
            runs[1],
            history,
            history,
            prior=min(priors().values(), key=lambda prior: prior.sd),
            same_machine=True,
            better=Better.LOWER,
        )
        return found.ratio

    return answer


PROMISED = (0.93, 0.9, 0.89, 0.86)
"""At RHOS, of twenty values or more."""
OF_TEN = {
    "median": (0.95, 0.92, 0.86, 0.72),
    "paired ratio": (0.95, 0.92, 0.86, 0.76),
    "unpaired ratio": (0.95, 0.93, 0.89, 0.81),
}
"""Of ten values: docs/decisions/0074-intervals-of-least-width.md has the frontier."""
RHOS = (0.0, 0.3, 0.6, 0.8)


def _dependent(
    statistic: str, n: int, truth: float, of: Callable[[dependence.Array], Answer], sides: int = 0
) -> list[Case]:
    """The cases of a statistic of dependent values; sides: two where it takes two series."""

    def drawn(rho: float) -> Callable[[np.random.Generator], Answer]:
        if sides:
            return lambda rng: of(np.exp(0.05 * ar1(rng, sides, n, rho)))
        return lambda rng: of(1 + 0.05 * ar1(rng, 1, n, rho)[0])

    size = f"10 to {n}" if of is _stopped else str(n)
    return [
        Case(statistic, size, rho, promised, truth, drawn(rho))
        for rho, promised in zip(RHOS, OF_TEN[statistic] if n == 10 else PROMISED, strict=True)
    ]


SIZES = (10, 20, 30)
DEPENDENT: list[Case] = [
    *(case for n in SIZES for case in _dependent("median", n, 1.0, _median)),
    *_dependent("p90", 40, 1 + 0.05 * P90, _p90),
    *(case for n in SIZES for case in _dependent("paired ratio", n, 1.0, _paired)),
    *(case for n in SIZES for case in _dependent("unpaired ratio", n, 1.0, _unpaired, 2)),
    *_dependent("median after the stopping rule", 100, 1.0, _stopped),
]


def _mean(statistic: str, truth: float, draw: Callable[[np.random.Generator], object]) -> Case:
    return Case(
        statistic,
        "10",
        None,
        0.93,
        truth,
        lambda rng: means.mean_of_skewed(draw(rng), unit=""),  # type: ignore[arg-type]
    )


OTHERS: list[Case] = [
    Case("difference, spread 1 against 15", "30, 6", None, 0.93, 0.0, _difference),
    _mean("mean, normal values", 10.0, lambda rng: rng.normal(10, 1, 10)),
    _mean(
        "mean, log-normal values (σ 0.5)", math.exp(0.125), lambda rng: rng.lognormal(0, 0.5, 10)
    ),
    _mean("mean, exponential values", 1.0, lambda rng: rng.exponential(1, 10)),
    *(
        Case(
            "p90 of merged histograms, trials differ by 15 %",
            f"{trials} trials",
            None,
            0.93,
            math.exp(P90 * math.hypot(0.15, 0.3)),
            _merged(trials),
        )
        for trials in (6, 20)
    ),
    *(
        Case(
            "separate runs, 3 % between them and 1 % inside",
            f"{earlier} earlier runs",
            None,
            promised,
            1.0,
            _separate(earlier),
        )
        for earlier, promised in ((0, 0.9), (5, 0.93))
    ),
]
CASES = [*DEPENDENT, *OTHERS]


def constants() -> dict[str, object]:
    """Returns what the counts depend on beside the method: they are stale when it changes."""
    return {
        "few": [round(float(weight), 4) for weight in dependence.assumed(dependence.FEW)],
        "many": [round(float(weight), 4) for weight in dependence.assumed(dependence.MANY)],
        "sharpness": [dependence.SHARPNESS_OF_FEW, dependence.SHARPNESS_OF_MANY],
        "sibling": dependence.SIBLING,
        "power of tails": estimates.POWER_OF_TAILS,
        "tails of looks": stopping.TAILS,
    }
