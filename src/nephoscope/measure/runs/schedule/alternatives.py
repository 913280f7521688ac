"""One alternative of a run: a setting on a target, what is known of it, and when it has ended."""

from __future__ import annotations

import bisect
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nephoscope.core.model import Setting, Shape, TrialRecord, TrialStatus
from nephoscope.measure.plans import Repeat
from nephoscope.measure.runs.schedule.headline import SeriesKey
from nephoscope.measure.runs.trials.failure_names import LOST
from nephoscope.stats import stopping

Pair = tuple[int, str]
"""Index of a setting, name of a target: one alternative of every round."""

REFUSED_AFTER = 3
"""A setting that fails so often in a row with the same named error is not tried again."""

LOST_AFTER = 3
"""A setting that takes its target away so often in a row is not tried again."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an alternative ended.

    word: converged, decided, measured (nothing to converge on, or as often as a nested design
    says), noise_known, max_reached, budget, refused, no_valid, target_lost. n: valid trials.
    needed: the least number asked for. reason: one sentence.
    """

    setting: int
    target: str
    benchmark: str
    factors: Mapping[str, Any]
    word: str
    n: int
    needed: int
    reason: str


@dataclass(slots=True)
class Alternative:
    """A setting on a target. values: of each headline series, one a valid trial, by round.

    Trials that run at once end in any order; what their interval is must not depend on it.
    """

    setting: Setting
    target: str
    repeat: Repeat
    metrics: Mapping[str, Shape]
    values: dict[SeriesKey, list[float]] = field(default_factory=dict)
    value_rounds: dict[SeriesKey, list[int]] = field(default_factory=dict)
    valid: int = 0
    rounds: int = 0
    costs_s: list[float] = field(default_factory=list)
    last_failures: list[str] = field(default_factory=list)
    last_reason: str = ""
    judged_at: int = 0
    losses: int = 0
    outcome: Outcome | None = None

    @property
    def pair(self) -> Pair:
        """Returns what tells it from the others."""
        return (self.setting.index, self.target)

    @property
    def rounds_left(self) -> int:
        """The rounds until it may end: at least so many."""
        if self.valid < self.repeat.min:
            return self.repeat.min - self.valid
        return min(self.repeat.look_every, max(0, self.repeat.max - self.rounds))

    @property
    def has_enough(self) -> bool:
        """Returns whether the least number of repetitions is there."""
        return self.valid >= self.repeat.min

    @property
    def cost_s(self) -> float:
        """Returns what one more trial is expected to take; 0 before the first."""
        return statistics.median(self.costs_s) if self.costs_s else 0.0

    def add(self, record: TrialRecord, values: Mapping[SeriesKey, float]) -> None:
        """Takes in one finished trial of it; values: its headline values."""
        if record.key.repeat_index:
            # A further trial of the round costs time; the first ones say how often it is repeated.
            self.costs_s.append(record.spent_s)
            return
        if record.failure_name == LOST:
            # A target that was away says nothing about the setting, and its rounds come later;
            # one that is lost again and again in this very trial does.
            self.losses += bool(record.timeline)
            if self.losses >= LOST_AFTER and self.outcome is None:
                self.stop(LOST, f"{self.losses} trials in a row lost it: {record.reasons[0]}")
            return
        self.losses = 0
        self.last_failures.append(record.failure_name)
        self.last_reason = record.reasons[0] if record.reasons else ""
        if record.key.round == 1:
            # The first rounds may be slower than those that follow; warm-up costs are forgotten.
            self.costs_s.clear()
        self.costs_s.append(record.spent_s)
        if record.key.round < 1:
            return
        self.rounds += 1
        if record.status is TrialStatus.VALID:
            self.valid += 1
            for key, value in values.items():
                rounds = self.value_rounds.setdefault(key, [])
                position = bisect.bisect(rounds, record.key.round)
                rounds.insert(position, record.key.round)
                self.values.setdefault(key, []).insert(position, value)
            if self.outcome is not None:
                # Its target goes on beside others that have not enough yet.
                self.outcome = replace(self.outcome, n=self.valid)

    def stop(self, word: str, reason: str) -> None:
        """It has ended, for this reason."""
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


def judge(
    alternative: Alternative, confidence: float, *, nested: bool = False, by_width: bool = True
) -> None:
    """Ends the alternative if there is a reason to; see `Outcome.word`.

    by_width: whether it is one that its interval is narrow enough.
    """
    tail = alternative.last_failures[-REFUSED_AFTER:]
    if len(tail) == REFUSED_AFTER and tail[0] and len(set(tail)) == 1:
        alternative.stop(
            "refused", f"it failed {REFUSED_AFTER} times in a row: {alternative.last_reason}"
        )
    elif nested:
        return  # as often as the design says, no less
    elif alternative.valid == 0:
        if alternative.rounds >= alternative.repeat.min:
            alternative.stop(
                "no_valid", f"none of {alternative.rounds} trials counts: {alternative.last_reason}"
            )
    elif not alternative.values:
        if alternative.has_enough:
            alternative.stop("measured", f"n = {alternative.valid}")
    elif (
        by_width
        and alternative.valid != alternative.judged_at
        and stopping.due(
            alternative.valid,
            n_min=alternative.repeat.min,
            n_max=alternative.repeat.max,
            look_every=alternative.repeat.look_every,
        )
    ):
        alternative.judged_at = alternative.valid
        _judge_intervals(alternative, confidence)
    if alternative.outcome is None and alternative.rounds >= alternative.repeat.max:
        alternative.stop(
            "max_reached", f"{alternative.rounds} rounds, of which {alternative.valid} count"
        )


def _judge_intervals(alternative: Alternative, confidence: float) -> None:
    """Ends the alternative when every headline series may stop."""
    decisions = {
        key: stopping.decide(
            values,
            n_min=alternative.repeat.min,
            n_max=alternative.repeat.max,
            relative_half_width=alternative.repeat.relative_half_width,
            confidence=confidence,
            look_every=alternative.repeat.look_every,
        )
        for key, values in alternative.values.items()
    }
    if any(not decision.stops for decision in decisions.values()):
        return
    for word in ("max_reached", "noise_known", "converged"):
        for (metric, _), decision in decisions.items():
            if decision.word == word:
                alternative.stop(word, f"{metric}: {decision.reason}")
                return
