"""Which trial comes next, and when it is enough: decided from finished trials alone.

Pure: no clock, no file. A run that was killed feeds its stored trials through the same code in the
same order and stands where it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from nephoscope.catalog import BenchmarkSpec
from nephoscope.core import units
from nephoscope.core.model import Setting, TrialRecord
from nephoscope.measure.plans import Plan, baseline_of, warmup_rounds
from nephoscope.measure.plans.estimate import money_spent
from nephoscope.measure.plans.service_use import use_of
from nephoscope.measure.runs.schedule import allocation, deciding
from nephoscope.measure.runs.schedule.alternatives import Alternative, Outcome, Pair, judge
from nephoscope.measure.runs.schedule.headline import Row, headline_metrics, headline_values
from nephoscope.measure.runs.trials.failure_names import LOST

UNMEASURABLE = ("refused", "no_valid", LOST)
"""Outcomes of alternatives that are not tried again, not even around others."""

HARD_LIMIT = 1.3
"""A round that the least number of repetitions needs may overrun the budget by this factor."""


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
        self._all: dict[Pair, Alternative] = {}
        for setting in settings:
            for target in setting.targets:
                metrics = headline_metrics(specs[setting.benchmark], setting.headline)
                repeat = plan.repeat_of(setting.entry)
                alternative = Alternative(setting, target, repeat, metrics)
                self._all[alternative.pair] = alternative
        self._baselines = baseline_of(plan, settings)
        self._partners = deciding.partners_of(plan, settings)
        self._budget_s = budget_s(plan)
        self._budget_text = budget_text(plan)
        self._use = use_of(plan, settings, specs.__getitem__)
        self._used_money = 0.0
        self.spent_s = 0.0
        self._left: tuple[TimeLeft, float] | None = None
        self._reported: set[Pair] = set()
        self.ended = 0
        """Alternatives that had ended when the last round did: it is asked for at every trial."""
        self._block: frozenset[int] = frozenset()
        self._block_ends = 0

    def cells(self) -> Iterator[Sequence[int]]:
        """Yields the rounds of each cell of a nested design, elsewhere each round by itself.

        Warm-up rounds come first, then 1, 2, … as long as an alternative goes on. Each cell has
        warm-up rounds of its own, and there are as many rounds as the design says.
        """
        nest, warmup = self._plan.design.nest, self._plan.warmup
        if nest is None:
            yield from ((number,) for number in warmup_rounds(warmup))
            number = 1
            while self.is_active:
                yield (number,)
                number += 1
            return
        for cell in range(nest.boots):
            if self.is_active:
                ready = range(1 - (cell + 1) * warmup, 1 - cell * warmup)
                yield (*ready, *range(1 + cell * nest.rounds, 1 + (cell + 1) * nest.rounds))
        self._end_nested()

    @property
    def is_active(self) -> bool:
        """Returns whether an alternative still goes on."""
        return any(alternative.outcome is None for alternative in self._all.values())

    def begin_round(self, round: int) -> list[Pair]:
        """The alternatives of this round; those for which no time is left have ended.

        A quiet alternative goes on as long as one goes on around which it stands.
        """
        estimate = self._estimate()
        self._left = None if estimate is None else (estimate, self.spent_s)
        going = [alternative for alternative in self._all.values() if alternative.outcome is None]
        if round < 1:
            # A warm-up readies one setting; what needs a single trial needs no warm-up.
            return [alternative.pair for alternative in going if alternative.repeat.max > 1]
        going = self._affordable(self._allotted(round, going))
        return [alternative.pair for alternative in (*going, *self._needed(going))]

    def _allotted(self, round: int, going: list[Alternative]) -> list[Alternative]:
        """The alternatives to which the plan's allocation gives this round."""
        widest = self._plan.repeat.allocation == "widest" and not self._baselines
        if (
            not widest
            or self._budget_s is None
            or not all(alternative.has_enough for alternative in going)
        ):
            return going
        ended = not any(alternative.setting.index in self._block for alternative in going)
        if ended or round >= self._block_ends:
            left_s = self._budget_s - self.spent_s
            self._block, rounds = allocation.widest(going, self._plan.confidence, left_s)
            self._block_ends = round + rounds
        # Where nothing fits any more, all are offered and end by the budget.
        return [
            alternative for alternative in going if alternative.setting.index in self._block
        ] or going

    def sure(self, pair: Pair, round: int) -> bool:
        """Returns whether this round of an alternative comes whatever is measured until then.
        Nothing is sure of one that has just failed, which may be refused next."""
        alternative = self._all[pair]
        failed = bool(alternative.last_failures and alternative.last_failures[-1])
        return (
            self._budget_s is None
            and round <= alternative.repeat.min
            and not (alternative.outcome or failed)
        )

    def _needed(self, going: Sequence[Alternative]) -> list[Alternative]:
        """Quiet alternatives that have ended themselves, and stand around others that go on."""
        there = {alternative.pair for alternative in going}
        wanted = {self._baselines[pair]: None for pair in there if pair in self._baselines}
        return [
            self._all[pair]
            for pair in self._all
            if pair in wanted and pair not in there and self._can_be_measured(self._all[pair])
        ]

    def _can_be_measured(self, alternative: Alternative) -> bool:
        return alternative.outcome is None or alternative.outcome.word not in UNMEASURABLE

    def _round_s(self, going: Sequence[Alternative]) -> float:
        """Returns what a round of these takes, with every repeat of the quiet ones around them."""
        turns = Counter(
            self._baselines[alternative.pair]
            for alternative in going
            if alternative.pair in self._baselines
        )
        further = sum(
            self._all[pair].cost_s * number
            for pair, number in turns.items()
            if self._can_be_measured(self._all[pair])
        )
        return further + _cost_s([*going, *self._needed(going)])

    def _affordable(self, going: list[Alternative]) -> list[Alternative]:
        if self._is_too_dear(going):
            for alternative in going:
                self._end_by_budget(alternative)
            return []
        most_s = self._budget_s
        if most_s is None or self.spent_s + self._round_s(going) <= most_s:
            return going
        # The round does not fit any more: only what lacks repetitions goes on, into the overtime.
        for alternative in going:
            if alternative.has_enough:
                self._end_by_budget(alternative)
        lacking = [alternative for alternative in going if alternative.outcome is None]
        begun = any(alternative.rounds for alternative in lacking)
        if begun and self.spent_s + self._round_s(lacking) > HARD_LIMIT * most_s:
            for alternative in lacking:
                self._end_by_budget(alternative)
            return []
        return lacking

    def _is_too_dear(self, going: Sequence[Alternative]) -> bool:
        """Returns whether a round costs more than is left, where requests or bytes have a price."""
        money = self._plan.money
        if money is None or not self._use:
            return False
        every = [*going, *self._needed(going)]
        used = sum(self._use.get(alternative.pair, 0.0) for alternative in every)
        whole_s = self.spent_s + self._round_s(going)
        if self._used_money + used + money_spent(self._plan, whole_s) <= money.limit:
            return False
        self._budget_text = f"{money.limit:.2f} {money.currency}"
        return True

    def time_for(self, pairs: Sequence[Pair], repeat_index: int = 0) -> float | None:
        """Seconds that the hard limit of the budget leaves to the next trial of these, together.

        None without a budget, and for the first trial that counts: however small the budget is,
        every alternative is measured once, with the baseline trials around it. Boots between cells
        are no alternatives.
        """
        first = 1 if repeat_index else 0
        if self._budget_s is None or any(
            alternative.rounds <= first for alternative in self._known(pairs)
        ):
            return None
        return HARD_LIMIT * self._budget_s - self.spent_s

    def out_of_time(self, pairs: Sequence[Pair], repeat_index: int = 0) -> bool:
        """Returns whether the next trial of these alternatives would overrun the hard limit."""
        left_s = self.time_for(pairs, repeat_index)
        return left_s is not None and _cost_s(self._known(pairs)) > left_s

    def _known(self, pairs: Iterable[Pair]) -> list[Alternative]:
        return [self._all[pair] for pair in pairs if pair in self._all]

    def time_left(self) -> TimeLeft | None:
        """Returns what the alternatives that go on will still take; None before anything is known.

        Estimated at the beginning of each round; from there on what is spent is taken off.
        """
        if self._left is None:
            return None
        left, at_s = self._left
        return TimeLeft(max(0.0, left.expected_s - (self.spent_s - at_s)), left.exact)

    def _estimate(self) -> TimeLeft | None:
        going = [alternative for alternative in self._all.values() if alternative.outcome is None]
        if any(not alternative.costs_s for alternative in going):
            return None
        expected_s = sum(alternative.cost_s * alternative.rounds_left for alternative in going)
        expected_s += sum(
            self._all[self._baselines[alternative.pair]].cost_s * alternative.rounds_left
            for alternative in going
            if alternative.pair in self._baselines
            and self._can_be_measured(self._all[self._baselines[alternative.pair]])
        )
        exact = all(
            alternative.repeat.max <= max(alternative.repeat.min, alternative.valid)
            for alternative in going
        )
        if self._budget_s is not None and expected_s > self._budget_s - self.spent_s:
            return TimeLeft(max(0.0, self._budget_s - self.spent_s), exact=True)
        return TimeLeft(expected_s, exact)

    def lose(self, pairs: Iterable[Pair], sentence: str) -> None:
        """Ends alternatives whose target was given up."""
        for alternative in self._known(pairs):
            if alternative.outcome is None:
                alternative.stop(LOST, sentence)

    def end_by_budget(self, budget: str = "") -> None:
        """Ends every alternative that still goes on: the time is spent. budget: other than the
        plan's."""
        self._budget_text = budget or self._budget_text
        for alternative in self._all.values():
            if alternative.outcome is None:
                self._end_by_budget(alternative)

    def add(self, record: TrialRecord, rows: Iterable[Row]) -> None:
        """Takes in one finished trial; rows: of its samples."""
        self.spent_s += record.spent_s
        self._used_money += self._use.get((record.key.setting, record.key.target), 0.0)
        alternative = self._all.get((record.key.setting, record.key.target))
        if alternative is not None:
            alternative.add(record, headline_values(rows, alternative.metrics))

    def end_round(self) -> list[Outcome]:
        """Looks at every alternative that goes on; returns what ended since the last call."""
        ended = []
        self._decide()
        compared = {*self._partners, *self._partners.values()}
        for alternative in self._all.values():
            if alternative.outcome is None:
                judge(
                    alternative,
                    self._plan.confidence,
                    nested=self._plan.design.nest is not None,
                    by_width=alternative.pair not in compared,
                )
            if alternative.outcome is not None and alternative.pair not in self._reported:
                self._reported.add(alternative.pair)
                ended.append(alternative.outcome)
        self.ended = len(self._reported)
        return ended

    def _decide(self) -> None:
        """Ends the alternatives whose comparison is decided, and what nothing is compared with any
        more."""
        metrics = max((len(self._all[pair].metrics) for pair in self._partners), default=1)
        rules = deciding.Rules.of(self._plan, len(self._partners), metrics)
        for pair, partner in self._partners.items():
            sides = self._all[pair], self._all[partner]
            if sides[0].outcome is None and (reason := deciding.decide(*sides, rules)):
                sides[0].stop("decided", reason)
        for partner in dict.fromkeys(self._partners.values()):
            own = [pair for pair, known in self._partners.items() if known == partner]
            if self._all[partner].outcome is None and all(self._all[pair].outcome for pair in own):
                self._all[partner].stop("decided", "no comparison with it is open")

    def outcomes(self) -> list[Outcome]:
        """Returns how each alternative ended so far, in the plan's order."""
        return [
            alternative.outcome
            for alternative in self._all.values()
            if alternative.outcome is not None
        ]

    @property
    def alternatives(self) -> int:
        """Returns how many alternatives the plan has."""
        return len(self._all)

    def _end_nested(self) -> None:
        """Every cell was measured: what lacks trials there has lost them."""
        for alternative in self._all.values():
            if alternative.outcome is None:
                word = "measured" if alternative.valid else "no_valid"
                alternative.stop(
                    word, f"{alternative.valid} of {alternative.repeat.max} trials count"
                )

    def _end_by_budget(self, alternative: Alternative) -> None:
        budget = self._budget_text
        if not alternative.metrics and alternative.has_enough:
            alternative.stop("measured", f"n = {alternative.valid}")
        elif alternative.has_enough:
            alternative.stop(
                "budget", f"the budget of {budget} was spent at n = {alternative.valid}"
            )
        else:
            alternative.stop(
                "budget",
                f"the budget of {budget} allowed "
                f"n = {alternative.valid} of {alternative.repeat.min}",
            )


def _cost_s(alternatives: Sequence[Alternative]) -> float:
    return sum(alternative.cost_s for alternative in alternatives)


def budget_s(plan: Plan) -> float | None:
    """Returns the seconds after which measuring ends: the smaller budget; None without one."""
    limits = [plan.budget_s] if plan.budget_s is not None else []
    per_hour = money_spent(plan, 3600)
    if plan.money is not None and per_hour > 0:
        limits.append(plan.money.limit / per_hour * 3600)
    return min(limits) if limits else None


def budget_text(plan: Plan) -> str:
    """Returns the budget that ends first, for sentences: '10 min', '5.00 USD (30 min)'."""
    seconds = budget_s(plan)
    if seconds is None:
        return ""
    text = units.format_duration(seconds)
    if seconds != plan.budget_s and plan.money is not None:
        return f"{plan.money.limit:.2f} {plan.money.currency} ({text})"
    return text
