"""Searches the highest rate at which a server meets an objective, by trials that are random.

A trial at a rate meets the objective or does not. The probability that it does falls with the
logarithm of the rate along a logistic curve; the capacity is the rate at which half of the trials
meet it. Neither the curve's place nor its slope is known: both get a posterior over a grid, and the
interval of the capacity averages over the slopes. The next rates to measure are quantiles of the
posterior (probabilistic bisection, Waeber, Frazier and Henderson 2013, several rates at a time).

A trial that missed the objective while its sender was late does not tell whether the server met it.
The interval reaches from its lower end with all such trials missed to its upper end with all of
them met (worst-case bounds, Manski 2003).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nephoscope.core.records import dataclass
from nephoscope.features.load.records import TrialOutcome

_POINTS = 1000
_SLOPES = np.geomspace(0.003, 0.5, 14)  # widths of the curve, in units of the rate's logarithm
_LOG_PRIOR = 0.5 * np.log(_SLOPES)  # towards wide curves, which keeps the interval's coverage
_LAPSE = 0.02  # a trial may be disturbed at any rate
_QUANTILES = (0.2, 0.5, 0.8)
_NOT_EXCLUDED = 0.15  # of the best rate's weight: what a likelihood ratio at 95 % leaves


@dataclass(frozen=True, slots=True)
class Capacity:
    """A rate per second with its interval, from n trials that decide.

    reaches_low_end, reaches_high_end: the trials do not exclude that end of the range, so the
    capacity may lie beyond it.
    """

    rate_per_s: float
    low: float
    high: float
    n: int
    reaches_low_end: bool
    reaches_high_end: bool

    @property
    def relative_width(self) -> float:
        """Half of the width of the interval as a share of the value."""
        return (self.high - self.low) / (2 * self.rate_per_s)


@dataclass(frozen=True, slots=True)
class RateRange:
    """Rates per second among which the capacity is searched."""

    low: float
    high: float


def estimate(outcomes: Sequence[TrialOutcome], among: RateRange, confidence: float) -> Capacity:
    """Returns the median of the posterior and its equal-tailed interval.

    The median is that of the trials that decide.
    """
    decided = [outcome for outcome in outcomes if not outcome.is_undecided]
    middle = _estimate(decided, among, confidence)
    if len(decided) == len(outcomes):
        return middle
    best = [replace(outcome, met=True) if outcome.is_undecided else outcome for outcome in outcomes]
    lower, upper = (_estimate(each, among, confidence) for each in (outcomes, best))
    return replace(
        middle,
        low=min(lower.low, middle.low),
        high=max(upper.high, middle.high),
        reaches_low_end=lower.reaches_low_end,
        reaches_high_end=upper.reaches_high_end,
    )


def _estimate(outcomes: Sequence[TrialOutcome], among: RateRange, confidence: float) -> Capacity:
    rates, weights = _posterior(outcomes, among)
    tail = (1 - confidence) / 2
    low, middle, high = _quantiles(rates, weights, (tail, 0.5, 1 - tail))
    return Capacity(
        middle,
        low,
        high,
        len(outcomes),
        reaches_low_end=bool(weights[0] > _NOT_EXCLUDED * weights.max()),
        reaches_high_end=bool(weights[-1] > _NOT_EXCLUDED * weights.max()),
    )


def next_rates(outcomes: Sequence[TrialOutcome], among: RateRange) -> list[float]:
    """The rates whose trials tell most, in rising order."""
    rates, weights = _posterior(outcomes, among)
    return _quantiles(rates, weights, _QUANTILES)


def _posterior(
    outcomes: Sequence[TrialOutcome], among: RateRange
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rates on a grid of equal ratios, and the probability that each is the capacity."""
    logs = np.linspace(np.log(among.low), np.log(among.high), _POINTS)
    likelihood = np.repeat(_LOG_PRIOR[:, None], _POINTS, axis=1)
    for outcome in outcomes:
        distance = (logs - np.log(outcome.rate_per_s)) / _SLOPES[:, None]
        met = _LAPSE + (1 - 2 * _LAPSE) / (1 + np.exp(-np.clip(distance, -500, 500)))
        likelihood += np.log(met if outcome.met else 1 - met)
    weights = np.exp(likelihood - likelihood.max()).sum(axis=0)
    return np.exp(logs), weights / weights.sum()


def _quantiles(
    rates: NDArray[np.float64], weights: NDArray[np.float64], shares: Sequence[float]
) -> list[float]:
    cumulated = np.cumsum(weights)
    places = np.minimum(np.searchsorted(cumulated, shares), _POINTS - 1)
    return [float(rates[place]) for place in places]
