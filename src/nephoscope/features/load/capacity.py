"""Finds the highest rate at which a server meets an objective of response time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from nephoscope.core.errors import NephoscopeError, RunFailed
from nephoscope.features.load.capacity_search import Capacity, RateRange, estimate, next_rates
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.features.load.records import SearchStage, TrialOutcome, Tried
from nephoscope.report import wording

_ROUNDS = 2
_SPREAD = 100.0  # of the range that is searched below the rate of the closed loop
_ABOVE = 1.2
_TRIAL_S = (1.0, 60.0)
_OVERLOAD = 0.1
"""Overload that a trial has to show: a shorter one takes a rate beyond the capacity as served."""
_STAGES_WITHOUT = 3
_TRIALS_OF_BUDGET = 12
"""A search needs about so many trials to have an interval, so none takes more of the budget."""
_LEAST_REQUESTS = 10
"""Requests of a trial below which its outcome says nothing: no lower rate is tried."""


@dataclass(frozen=True, slots=True)
class CapacityStage:
    """Outcomes of one run, how many trials were excluded, and why where none is left.

    spent_s: seconds that each trial took, the first one with the start of the stage.
    """

    outcomes: Sequence[TrialOutcome]
    excluded: int
    failure: NephoscopeError | None = None
    spent_s: Sequence[float] = ()


@dataclass(slots=True)
class Costs:
    """Seconds besides the load that a stage takes and that each of its trials takes: the largest
    so far, beginning with those of an idle machine."""

    stage_s: float = 1.5
    trial_s: float = 0.5

    def learn(
        self, elapsed_s: float, trials: int, trial_s: float, spent_s: Sequence[float]
    ) -> None:
        """Takes in a stage of so many trials with so many seconds of load each.

        elapsed_s: of the stage. spent_s: as in `Stage`.
        """
        if len(spent_s) > 1:
            self.trial_s = max(self.trial_s, fmean(spent_s[1:]) - trial_s)
        self.stage_s = max(self.stage_s, elapsed_s - trials * (trial_s + self.trial_s))


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """End of a search: a relative half-width, or a time. spread: highest over lowest rate of the
    range that is searched; the closed loop has the highest but for a fifth."""

    precision_ratio: float
    budget_s: float
    confidence: float
    spread: float = _SPREAD


@dataclass(frozen=True, slots=True)
class StagePlan:
    """The next stage: its rates, how often each is measured, and the seconds of a trial.

    limit_s: the rest of the budget, at which the stage ends whatever is measured then.
    """

    rates_per_s: Sequence[float]
    rounds: int
    trial_s: float
    limit_s: float

    @property
    def trials(self) -> int:
        """Number of its trials."""
        return self.rounds * len(self.rates_per_s)


Measure = Callable[[StagePlan], CapacityStage]
"""Measures the rates of a stage in interleaved rounds."""


@dataclass(frozen=True, slots=True)
class Search:
    """Result of a search: the capacity, and the trials from which it comes.

    excluded: number of trials that have no outcome. shortest_s: load of the shortest trial.
    """

    capacity: Capacity
    excluded: int
    stages: tuple[SearchStage, ...]
    shortest_s: float
    ended_by_budget: bool

    @property
    def outcomes(self) -> list[TrialOutcome]:
        """Returns those of all stages."""
        return [trial for stage in self.stages for trial in stage.trials]

    @property
    def tried(self) -> tuple[Tried, ...]:
        """Returns the rates, with the number of their trials."""
        by_rate: dict[float, list[TrialOutcome]] = {}
        for outcome in sorted(self.outcomes, key=lambda trial: trial.rate_per_s):
            by_rate.setdefault(outcome.rate_per_s, []).append(outcome)
        return tuple(
            Tried(
                rate,
                len(own),
                sum(outcome.met for outcome in own),
                sum(outcome.is_sender_late for outcome in own),
            )
            for rate, own in by_rate.items()
        )


def search(
    measure: Measure,
    objective: LatencyObjective,
    closed_loop_per_s: float,
    limits: SearchLimits,
    now: Callable[[], float] = time.monotonic,
    costs: Costs | None = None,
) -> Search:
    """Measures the rates that tell most until the interval is narrow enough, or until the rest of
    the budget has no room for another trial: a stage is planned to end within it, and ended there.

    costs: as measured before the search. Raises the failure of the third stage in a row without an
    outcome, or where none has one.
    """
    lowest = max(
        closed_loop_per_s / limits.spread, _LEAST_REQUESTS / longest_trial_s(limits.budget_s)
    )
    among = RateRange(min(lowest, closed_loop_per_s / 2), closed_loop_per_s * _ABOVE)
    outcomes: list[TrialOutcome] = []
    stages: list[SearchStage] = []
    excluded = without = 0
    costs, shortest_s = costs or Costs(), math.inf
    ends_s = now() + limits.budget_s
    plan = stage_plan(outcomes, among, objective, limits.budget_s, limits.budget_s, costs)
    if plan is None:
        raise RunFailed(
            "The budget has no room for a trial after the closed loop, in which the server "
            f"answered {closed_loop_per_s:,.0f} requests per second.",
            "Use a larger --budget, such as 2min.",
        )
    while True:
        began_s = now()
        stage = measure(plan)
        costs.learn(now() - began_s, plan.trials, plan.trial_s, stage.spent_s)
        shortest_s = min(shortest_s, plan.trial_s)
        outcomes += stage.outcomes
        excluded += stage.excluded
        without = 0 if stage.outcomes else without + 1
        left_s = ends_s - now()
        plan = stage_plan(outcomes, among, objective, limits.budget_s, left_s, costs)
        if without == _STAGES_WITHOUT or (plan is None and not outcomes):
            raise stage.failure or RunFailed(
                "No trial of the search is valid.", "Run `nephoscope load` at a set rate."
            )
        capacity = estimate(outcomes, among, limits.confidence)
        interval = capacity.rate_per_s, capacity.low, capacity.high
        stages.append(SearchStage(tuple(stage.outcomes), *interval))
        is_narrow = capacity.relative_width <= limits.precision_ratio
        if is_narrow or plan is None:
            return Search(capacity, excluded, tuple(stages), shortest_s, not is_narrow)


def stage_plan(
    outcomes: Sequence[TrialOutcome],
    among: RateRange,
    objective: LatencyObjective,
    budget_s: float,
    left_s: float,
    costs: Costs,
) -> StagePlan | None:
    """Returns the next stage as it fits into the rest of the budget; None where no trial does.

    Trials become shorter than the percentile needs
    before they become fewer than a search needs; the result states it.
    """
    rates = next_rates(outcomes, among)
    least_s = _TRIAL_S[0]
    wanted_s = min(longest_trial_s(budget_s), trial_s(objective, rates[0]))
    for own, rounds in ((rates, _ROUNDS), (rates, 1), (rates[len(rates) // 2 :][:1], 1)):
        room_s = (left_s - costs.stage_s) / (rounds * len(own)) - costs.trial_s
        if room_s >= wanted_s:
            return StagePlan(own, rounds, wanted_s, left_s)
    return StagePlan(own, 1, room_s, left_s) if room_s >= least_s else None


def longest_trial_s(budget_s: float) -> float:
    """Returns the seconds that a trial may take, so that the budget has room for a search."""
    return max(_TRIAL_S[0], budget_s / _TRIALS_OF_BUDGET - Costs().trial_s)


def trial_s(objective: LatencyObjective, rate_per_s: float) -> float:
    """Seconds in which this rate has enough requests for the objective's percentile, and in which
    an overload of a tenth is seen: its queue has to reach the limit before that percentile of the
    requests is sent."""
    low, high = _TRIAL_S
    grown_s = 1e-9 * objective.limit_ns / (_OVERLOAD * objective.share_ratio)
    requests_s = math.ceil(objective.least_requests / rate_per_s)
    return min(high, max(low, requests_s, grown_s))


def conclusion(
    search_result: Search, objective: LatencyObjective, confidence: float
) -> tuple[str, bool]:
    """Returns what is known of the capacity in a sentence, and whether it has an interval."""
    level, capacity = f"{100 * confidence:g} %", search_result.capacity
    seen = _bounds_seen(search_result.outcomes)
    if capacity.reaches_high_end and capacity.reaches_low_end:
        return f"The trials do not bound the rate up to which {objective} holds: {seen}.", False
    if capacity.reaches_high_end:
        low = f"{capacity.low:,.0f} requests per second at least ({level})"
        return f"{objective} holds up to {low}: {seen}.", False
    if capacity.reaches_low_end:
        high = f"{capacity.high:,.0f} requests per second at most ({level}), if at any rate"
        return f"{objective} holds up to {high}: {seen}.", False
    return (
        f"{objective} holds up to {capacity.rate_per_s:,.0f} requests per second "
        f"[{capacity.low:,.0f}, {capacity.high:,.0f}] at {level} (n = {capacity.n} trials).",
        True,
    )


def _bounds_seen(outcomes: Sequence[TrialOutcome]) -> str:
    """The highest rate that met an objective, and the lowest that missed it for sure."""
    met = [outcome.rate_per_s for outcome in outcomes if outcome.met]
    missed = [
        outcome.rate_per_s for outcome in outcomes if not outcome.met and not outcome.is_undecided
    ]
    undecided = [outcome.rate_per_s for outcome in outcomes if outcome.is_undecided]
    parts = [f"the highest rate that met it was {max(met):,.0f}/s" if met else "no rate met it"]
    parts += [f"the lowest that missed it {min(missed):,.0f}/s"] if missed else []
    parts += [f"late senders leave it open from {min(undecided):,.0f}/s"] if undecided else []
    if not missed:
        parts.append(
            f"no rate above {max(outcome.rate_per_s for outcome in outcomes):,.0f}/s was tried"
        )
    return ", ".join(parts)


def _late_sender(outcomes: Sequence[TrialOutcome]) -> str:
    """Returns that the generator was late where the objective was missed; else empty."""
    undecided = [outcome.rate_per_s for outcome in outcomes if outcome.is_undecided]
    if not undecided:
        return ""
    beyond = [outcome for outcome in outcomes if outcome.rate_per_s >= min(undecided)]
    return (
        f"The sender was late in {sum(outcome.is_sender_late for outcome in beyond)} of "
        f"{wording.plural(len(beyond), 'trial')} at {min(undecided):,.0f}/s and above: the load "
        "generator, not the server, may be the limit. Those that missed the objective count as "
        "undecided; use a machine with free CPUs for the generator."
    )


def remarks(search_result: Search, objective: LatencyObjective, limits: SearchLimits) -> list[str]:
    """Returns what the budget did to a search: an interval wider than wanted, short trials."""
    reached, sentences = search_result.capacity, []
    late = _late_sender(search_result.outcomes)
    if late:
        sentences.append(late)
    if search_result.ended_by_budget and (reached.reaches_low_end or reached.reaches_high_end):
        sentences.append("The budget ended the search; a larger --budget tells more.")
    elif search_result.ended_by_budget:
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
