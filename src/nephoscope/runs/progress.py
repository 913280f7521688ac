"""Which trial comes next, and when it is enough: decided from finished trials alone.

Pure: no clock, no file. A run that was killed feeds its stored trials through the same code in the
same order and stands where it was.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nephoscope.analysis import stopping
from nephoscope.catalog import BenchmarkSpec
from nephoscope.model import Setting, Shape, TrialRecord, TrialStatus
from nephoscope.plans import Plan, Repeat, rounds_before_first
from nephoscope.runs.budget import budget_s, budget_text
from nephoscope.runs.headline import SeriesKey, headline_metrics

Pair = tuple[int, str]
"""Index of a setting, name of a target: one alternative of every round."""

HARD_LIMIT = 1.3
"""A round that the least number of repetitions needs may overrun the budget by this factor."""

REFUSED_AFTER = 3
"""A setting that fails so often in a row with the same named error is not tried again."""

LOST = "target_lost"
"""Failure name of a trial whose target did not answer, and outcome of what was given up for it."""

DONE_WORDS = ("converged", "measured")
"""Outcomes with which a run may call itself converged."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an alternative ended.

    word: converged, measured (nothing to converge on, or as often as a nested design says),
    noise_known, max_reached, budget, refused, no_valid, target_lost. n: valid trials. needed: the
    least number asked for. reason: one sentence.
    """

    setting: int
    target: str
    benchmark: str
    factors: Mapping[str, Any]
    word: str
    n: int
    needed: int
    reason: str

    def to_json(self) -> dict[str, Any]:
        """The object in the manifest's `outcomes`."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class _Alternative:
    setting: Setting
    target: str
    repeat: Repeat
    metrics: Mapping[str, Shape]
    values: dict[SeriesKey, list[float]] = field(default_factory=dict)
    valid: int = 0
    rounds: int = 0
    costs_s: list[float] = field(default_factory=list)
    last_failures: list[str] = field(default_factory=list)
    last_reason: str = ""
    looked_at: int = 0
    outcome: Outcome | None = None

    @property
    def pair(self) -> Pair:
        return (self.setting.index, self.target)

    @property
    def rounds_left(self) -> int:
        """The rounds until it may end: at least so many."""
        if self.valid < self.repeat.min:
            return self.repeat.min - self.valid
        return min(self.repeat.look_every, max(0, self.repeat.max - self.rounds))

    @property
    def has_enough(self) -> bool:
        return self.valid >= self.repeat.min

    @property
    def cost_s(self) -> float:
        """What one more trial is expected to take; 0 before the first."""
        return statistics.median(self.costs_s) if self.costs_s else 0.0

    def stop(self, word: str, reason: str) -> None:
        self.outcome = Outcome(
            self.setting.index,
            self.target,
            self.setting.benchmark,
            self.setting.factors,
            word,
            self.valid,
            self.repeat.min,
            reason,
        )


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """What a run will still take. exact: no more than that; else it may go on for longer."""

    expected_s: float
    exact: bool


class Progress:
    """The state of a run: fed with finished trials in order, asked what comes next."""

    def __init__(
        self, plan: Plan, settings: Sequence[Setting], specs: Mapping[str, BenchmarkSpec]
    ) -> None:
        self._plan = plan
        self._all: dict[Pair, _Alternative] = {}
        for setting in settings:
            for target in setting.targets:
                metrics = headline_metrics(specs[setting.benchmark], setting.headline)
                repeat = plan.repeat_of(setting.entry)
                one = _Alternative(setting, target, repeat, metrics)
                self._all[one.pair] = one
        self._budget_s = budget_s(plan)
        self._budget_text = budget_text(plan)
        self.spent_s = 0.0
        self._told: set[Pair] = set()

    def rounds(self) -> Iterator[int]:
        """Warm-up rounds, then 1, 2, … as long as an alternative goes on.

        Each cell of a nested design has warm-up rounds of its own, and there are as many rounds as
        the design says.
        """
        nest, warmup = self._plan.design.nest, self._plan.warmup
        if nest is None:
            yield from rounds_before_first(warmup)
            number = 1
            while self.goes_on:
                yield number
                number += 1
            return
        for cell in range(nest.instance * nest.boot):
            if self.goes_on:
                yield from range(1 - (cell + 1) * warmup, 1 - cell * warmup)
                yield from range(1 + cell * nest.rounds, 1 + (cell + 1) * nest.rounds)
        self._end_nested()

    @property
    def goes_on(self) -> bool:
        """Whether an alternative still goes on."""
        return any(one.outcome is None for one in self._all.values())

    def begin_round(self, round: int) -> list[Pair]:
        """The alternatives of this round; those for which no time is left have ended."""
        going = [one for one in self._all.values() if one.outcome is None]
        if round < 1:
            # A warm-up readies one setting; what needs a single trial needs no warm-up.
            return [one.pair for one in going if one.repeat.max > 1]
        return [one.pair for one in self._affordable(going)]

    def _affordable(self, going: list[_Alternative]) -> list[_Alternative]:
        most_s = self._budget_s
        if most_s is None or self.spent_s + _cost_s(going) <= most_s:
            return going
        # The round does not fit any more: only what lacks repetitions goes on, into the overtime.
        for one in going:
            if one.has_enough:
                self._end_by_budget(one)
        lacking = [one for one in going if one.outcome is None]
        begun = any(one.rounds for one in lacking)
        if begun and self.spent_s + _cost_s(lacking) > HARD_LIMIT * most_s:
            for one in lacking:
                self._end_by_budget(one)
            return []
        return lacking

    def knows(self, pair: Pair) -> bool:
        """Whether this is an alternative of the plan; the boots between cells are none."""
        return pair in self._all

    def time_for(self, pairs: Sequence[Pair]) -> float | None:
        """Seconds that the hard limit of the budget leaves to the next trial of these, together.

        None without a budget, and for the first trial that counts: however small the budget is,
        every alternative is measured once.
        """
        if self._budget_s is None or any(self._all[pair].rounds == 0 for pair in pairs):
            return None
        return HARD_LIMIT * self._budget_s - self.spent_s

    def out_of_time(self, pairs: Sequence[Pair]) -> bool:
        """Whether the next trial of these alternatives would overrun the hard limit."""
        left_s = self.time_for(pairs)
        return left_s is not None and _cost_s([self._all[pair] for pair in pairs]) > left_s

    def time_left(self) -> TimeLeft | None:
        """What the alternatives that go on will still take; None before anything is known."""
        going = [one for one in self._all.values() if one.outcome is None]
        if any(not one.costs_s for one in going):
            return None
        expected_s = sum(one.cost_s * one.rounds_left for one in going)
        exact = all(one.repeat.max <= max(one.repeat.min, one.valid) for one in going)
        if self._budget_s is not None and expected_s > self._budget_s - self.spent_s:
            return TimeLeft(max(0.0, self._budget_s - self.spent_s), exact=True)
        return TimeLeft(expected_s, exact)

    def lose(self, pairs: Iterable[Pair], sentence: str) -> None:
        """Ends alternatives whose target was given up."""
        for pair in pairs:
            one = self._all.get(pair)
            if one is not None and one.outcome is None:
                one.stop(LOST, sentence)

    def end_by_budget(self) -> None:
        """Ends every alternative that still goes on: the time is spent."""
        for one in self._all.values():
            if one.outcome is None:
                self._end_by_budget(one)

    def add(self, record: TrialRecord, values: Mapping[SeriesKey, float]) -> None:
        """Takes in one finished trial; values: its headline values."""
        self.spent_s += record.spent_s
        one = self._all.get((record.key.setting, record.key.target))
        if one is None or record.failure_name == LOST:
            # A target that was away says nothing about the setting, and its rounds come later.
            return
        one.last_failures.append(record.failure_name)
        one.last_reason = record.reasons[0] if record.reasons else ""
        if record.key.round == 1:
            # The first rounds may be slower than those that follow; warm-up costs are forgotten.
            one.costs_s.clear()
        one.costs_s.append(record.spent_s)
        if record.key.round < 1:
            return
        one.rounds += 1
        if record.status is TrialStatus.VALID:
            one.valid += 1
            for key, value in values.items():
                one.values.setdefault(key, []).append(value)
            if one.outcome is not None:
                # Its target goes on beside others that have not enough yet.
                one.outcome = replace(one.outcome, n=one.valid)

    def end_round(self) -> list[Outcome]:
        """Looks at every alternative that goes on; returns what ended since the last call."""
        ended = []
        for one in self._all.values():
            if one.outcome is None:
                _look(one, self._plan.confidence, nested=self._plan.design.nest is not None)
            if one.outcome is not None and one.pair not in self._told:
                self._told.add(one.pair)
                ended.append(one.outcome)
        return ended

    def outcomes(self) -> list[Outcome]:
        """How each alternative ended so far, in the plan's order."""
        return [one.outcome for one in self._all.values() if one.outcome is not None]

    @property
    def alternatives(self) -> int:
        """How many alternatives the plan has."""
        return len(self._all)

    def _end_nested(self) -> None:
        """Every cell was measured: what lacks trials there has lost them."""
        for one in self._all.values():
            if one.outcome is None:
                word = "measured" if one.valid else "no_valid"
                one.stop(word, f"{one.valid} of {one.repeat.max} trials count")

    def _end_by_budget(self, one: _Alternative) -> None:
        budget = self._budget_text
        if not one.metrics and one.has_enough:
            one.stop("measured", f"n = {one.valid}")
        elif one.has_enough:
            one.stop("budget", f"the budget of {budget} was spent at n = {one.valid}")
        else:
            one.stop(
                "budget", f"the budget of {budget} allowed n = {one.valid} of {one.repeat.min}"
            )


def _cost_s(alternatives: Sequence[_Alternative]) -> float:
    return sum(one.cost_s for one in alternatives)


def _look(one: _Alternative, confidence: float, *, nested: bool = False) -> None:
    """Ends the alternative if there is a reason to; see `Outcome.word`."""
    tail = one.last_failures[-REFUSED_AFTER:]
    if len(tail) == REFUSED_AFTER and tail[0] and len(set(tail)) == 1:
        one.stop("refused", f"it failed {REFUSED_AFTER} times in a row: {one.last_reason}")
    elif nested:
        return  # as often as the design says, no less
    elif one.valid == 0:
        if one.rounds >= one.repeat.min:
            one.stop("no_valid", f"none of {one.rounds} trials counts: {one.last_reason}")
    elif not one.values:
        if one.has_enough:
            one.stop("measured", f"n = {one.valid}")
    elif one.valid != one.looked_at and stopping.due(
        one.valid,
        n_min=one.repeat.min,
        n_max=one.repeat.max,
        look_every=one.repeat.look_every,
    ):
        one.looked_at = one.valid
        _look_at_intervals(one, confidence)
    if one.outcome is None and one.rounds >= one.repeat.max:
        one.stop("max_reached", f"{one.rounds} rounds, of which {one.valid} count")


def _look_at_intervals(one: _Alternative, confidence: float) -> None:
    """Ends the alternative when every headline series may stop."""
    looks = {
        key: stopping.look(
            values,
            n_min=one.repeat.min,
            n_max=one.repeat.max,
            relative_half_width=one.repeat.relative_half_width,
            confidence=confidence,
            look_every=one.repeat.look_every,
        )
        for key, values in one.values.items()
    }
    if any(not look.stops for look in looks.values()):
        return
    for word in ("max_reached", "noise_known", "converged"):
        for (metric, _), look in looks.items():
            if look.word == word:
                one.stop(word, f"{metric}: {look.reason}")
                return
