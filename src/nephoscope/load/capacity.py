"""Finds the highest rate at which a server meets an objective of response time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nephoscope.errors import NephoscopeError, RunFailed
from nephoscope.load.capacity_search import Capacity, Range, estimate, next_rates
from nephoscope.load.objective import Objective
from nephoscope.load.records import SearchStage, TrialOutcome, Tried

_ROUNDS = 2
_SPREAD = 100.0  # of the range that is searched below the rate of the closed loop
_ABOVE = 1.2
_TRIAL_S = (1.0, 60.0)
_STAGES_WITHOUT = 3


@dataclass(frozen=True, slots=True)
class Stage:
    """Outcomes of one run, how many trials were excluded, and why where none is left."""

    outcomes: Sequence[TrialOutcome]
    excluded: int
    failure: NephoscopeError | None = None


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """End of a search: a relative half-width, or a time."""

    precision_ratio: float
    budget_s: float
    confidence: float


Measure = Callable[[Sequence[float], int, float], Stage]
"""Measures rates in so many interleaved rounds of trials of so many seconds."""


@dataclass(frozen=True, slots=True)
class Search:
    """Result of a search: the capacity, the rates that were tried, and the excluded trials."""

    capacity: Capacity
    tried: tuple[Tried, ...]
    excluded: int
    stages: tuple[SearchStage, ...]


def search(
    measure: Measure,
    objective: Objective,
    closed_loop_per_s: float,
    limits: SearchLimits,
    now: Callable[[], float] = time.monotonic,
) -> Search:
    """Measures the rates that tell most until the interval is narrow enough or time is spent.

    Raises the failure of the third stage in a row without an outcome, or where none has one.
    """
    among = Range(closed_loop_per_s / _SPREAD, closed_loop_per_s * _ABOVE)
    outcomes: list[TrialOutcome] = []
    stages: list[SearchStage] = []
    excluded = without = 0
    began_s = now()
    while True:
        rates = next_rates(outcomes, among)
        stage = measure(rates, _ROUNDS, trial_s(objective, rates[0]))
        outcomes += stage.outcomes
        excluded += stage.excluded
        without = 0 if stage.outcomes else without + 1
        time_is_over = now() - began_s >= limits.budget_s
        if without == _STAGES_WITHOUT or (time_is_over and not outcomes):
            raise stage.failure or RunFailed(
                "No trial of the search is valid.", "Run `nephoscope load` at a set rate."
            )
        capacity = estimate(outcomes, among, limits.confidence)
        interval = capacity.rate_per_s, capacity.low, capacity.high
        stages.append(SearchStage(tuple(stage.outcomes), *interval))
        if capacity.relative_width <= limits.precision_ratio or time_is_over:
            return Search(capacity, _tried(outcomes), excluded, tuple(stages))


def trial_s(objective: Objective, rate_per_s: float) -> float:
    """Seconds in which this rate has enough requests for the objective's percentile."""
    low, high = _TRIAL_S
    return min(high, max(low, math.ceil(objective.least_requests / rate_per_s)))


def _tried(outcomes: Sequence[TrialOutcome]) -> tuple[Tried, ...]:
    """Counts the trials of each rate."""
    rates = sorted({one.rate_per_s for one in outcomes})
    own = {rate: [one.met for one in outcomes if one.rate_per_s == rate] for rate in rates}
    return tuple(Tried(rate, len(met), sum(met)) for rate, met in own.items())


def conclusion(capacity: Capacity, objective: Objective, confidence: float) -> tuple[str, bool]:
    """Returns what is known of the capacity in a sentence, and whether it has an interval."""
    level = f"{100 * confidence:g} %"
    if capacity.reaches_high_end:
        return (
            f"{objective} holds up to {capacity.low:,.0f} requests per second at least ({level}); "
            "no higher rate than that of the closed loop was tried.",
            False,
        )
    if capacity.reaches_low_end:
        return (
            f"{objective} holds up to {capacity.high:,.0f} requests per second at most ({level}), "
            "if at any rate.",
            False,
        )
    return (
        f"{objective} holds up to {capacity.rate_per_s:,.0f} requests per second "
        f"[{capacity.low:,.0f}, {capacity.high:,.0f}] at {level} (n = {capacity.n} trials).",
        True,
    )
