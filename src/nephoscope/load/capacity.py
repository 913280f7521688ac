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
_TRIALS_OF_BUDGET = 12
"""A search needs about so many trials to have an interval, so none takes more of the budget."""
_TRIAL_OVERHEAD_S = 0.5
"""Time of a trial besides its load."""
_STAGE_OVERHEAD_S = 1.5
"""Time of a stage besides its trials, to begin with; each stage measures it again."""
_LEAST_REQUESTS = 10
"""Requests of a trial below which its outcome says nothing: no lower rate is tried."""


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


@dataclass(frozen=True, slots=True)
class StagePlan:
    """The next stage: its rates, how often each is measured, and the seconds of a trial."""

    rates_per_s: Sequence[float]
    rounds: int
    trial_s: float

    @property
    def trials(self) -> int:
        """Number of its trials."""
        return self.rounds * len(self.rates_per_s)


Measure = Callable[[Sequence[float], int, float], Stage]
"""Measures rates in so many interleaved rounds of trials of so many seconds."""


@dataclass(frozen=True, slots=True)
class Search:
    """Result of a search: the capacity, the rates that were tried, and the excluded trials."""

    capacity: Capacity
    tried: tuple[Tried, ...]
    excluded: int
    stages: tuple[SearchStage, ...]
    shortest_s: float
    ended_by_budget: bool


def search(
    measure: Measure,
    objective: Objective,
    closed_loop_per_s: float,
    limits: SearchLimits,
    now: Callable[[], float] = time.monotonic,
) -> Search:
    """Measures the rates that tell most until the interval is narrow enough, or until the rest of
    the budget has no room for another trial: a stage is planned to end within it.

    Raises the failure of the third stage in a row without an outcome, or where none has one.
    """
    lowest = max(closed_loop_per_s / _SPREAD, _LEAST_REQUESTS / longest_trial_s(limits.budget_s))
    among = Range(min(lowest, closed_loop_per_s / 2), closed_loop_per_s * _ABOVE)
    outcomes: list[TrialOutcome] = []
    stages: list[SearchStage] = []
    excluded = without = 0
    overhead_s, shortest_s = _STAGE_OVERHEAD_S, math.inf
    ends_s = now() + limits.budget_s
    plan = stage_plan(outcomes, among, objective, limits.budget_s, limits.budget_s, overhead_s)
    if plan is None:
        raise RunFailed(
            "The budget has no room for a trial after the closed loop.",
            "Use a larger --budget, such as 2min.",
        )
    while True:
        began_s = now()
        stage = measure(plan.rates_per_s, plan.rounds, plan.trial_s)
        trials_s = plan.trials * (plan.trial_s + _TRIAL_OVERHEAD_S)
        overhead_s = max(overhead_s, now() - began_s - trials_s)
        shortest_s = min(shortest_s, plan.trial_s)
        outcomes += stage.outcomes
        excluded += stage.excluded
        without = 0 if stage.outcomes else without + 1
        left_s = ends_s - now()
        plan = stage_plan(outcomes, among, objective, limits.budget_s, left_s, overhead_s)
        if without == _STAGES_WITHOUT or (plan is None and not outcomes):
            raise stage.failure or RunFailed(
                "No trial of the search is valid.", "Run `nephoscope load` at a set rate."
            )
        capacity = estimate(outcomes, among, limits.confidence)
        interval = capacity.rate_per_s, capacity.low, capacity.high
        stages.append(SearchStage(tuple(stage.outcomes), *interval))
        is_narrow = capacity.relative_width <= limits.precision_ratio
        if is_narrow or plan is None:
            tried = _tried(outcomes)
            return Search(capacity, tried, excluded, tuple(stages), shortest_s, not is_narrow)


def stage_plan(
    outcomes: Sequence[TrialOutcome],
    among: Range,
    objective: Objective,
    budget_s: float,
    left_s: float,
    overhead_s: float,
) -> StagePlan | None:
    """Returns the next stage as it fits into the rest of the budget; None where no trial does.

    overhead_s: time of a stage besides its trials. Trials become shorter than the percentile needs
    before they become fewer than a search needs; the result states it.
    """
    rates = next_rates(outcomes, among)
    least_s = _TRIAL_S[0]
    wanted_s = min(longest_trial_s(budget_s), trial_s(objective, rates[0]))
    for own, rounds in ((rates, _ROUNDS), (rates, 1), (rates[len(rates) // 2 :][:1], 1)):
        room_s = (left_s - overhead_s) / (rounds * len(own)) - _TRIAL_OVERHEAD_S
        if room_s >= wanted_s:
            return StagePlan(own, rounds, wanted_s)
    return StagePlan(own, 1, room_s) if room_s >= least_s else None


def longest_trial_s(budget_s: float) -> float:
    """Returns the seconds that a trial may take, so that the budget has room for a search."""
    return max(_TRIAL_S[0], budget_s / _TRIALS_OF_BUDGET - _TRIAL_OVERHEAD_S)


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


def remarks(search_result: Search, objective: Objective, limits: SearchLimits) -> list[str]:
    """Returns what the budget did to a search: an interval wider than wanted, short trials."""
    reached, sentences = search_result.capacity, []
    if search_result.ended_by_budget:
        sentences.append(
            f"The budget ended the search: the interval is ±{100 * reached.relative_width:.2g} % "
            f"where ±{100 * limits.precision_ratio:g} % was wanted. A larger --budget narrows it."
        )
    requests = reached.rate_per_s * search_result.shortest_s
    if search_result.shortest_s < trial_s(objective, reached.rate_per_s):
        sentences.append(
            f"Trials took {search_result.shortest_s:.2g} s to fit into the budget, about "
            f"{requests:,.0f} requests at this rate, where "
            f"p{100 * objective.share_ratio:g} needs {objective.least_requests:,}; "
            "a larger --budget makes each of them more certain."
        )
    return sentences
