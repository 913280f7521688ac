"""States of the slots of a period: per observer, then by a vote of the observers; outages."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from nephoscope.core import limits
from nephoscope.core.errors import UsageError
from nephoscope.core.records import dataclass
from nephoscope.features.sla.events import FAILED, OK, UNKNOWN, States, Stream
from nephoscope.features.sla.periods import NS, Period
from nephoscope.features.sla.terms import Objective, nanoseconds
from nephoscope.stats.statistics.values import runs_of

Flags = NDArray[np.bool_]
Times = tuple[int, int]


@dataclass(frozen=True, slots=True)
class JudgementContext:
    """JudgementContext that a period is judged by, besides its events.

    now_ns: the period may not be over. holds_ns: time for which a slot without events has the state
    of the last slot with events before it. good_before_ns: slots without events that end by then
    are good.
    """

    exclusions: Sequence[Times]
    now_ns: int
    holds_ns: int
    confidence: float
    zone: str
    good_before_ns: int = 0


@dataclass(frozen=True, slots=True)
class SlotStates:
    """The slots of a period: state, which are excluded, and how many the observers dispute."""

    states: States
    excluded: Flags
    disputed: int
    slot_ns: int

    @property
    def down(self) -> Flags:
        """Returns the slots that are known to be bad."""
        return np.asarray((self.states == FAILED) & ~self.excluded)

    @property
    def unknown(self) -> Flags:
        """Returns the slots of which nothing is known."""
        return np.asarray((self.states == UNKNOWN) & ~self.excluded)


def slot_states(
    objective: Objective, streams: Sequence[Stream], period: Period, around: JudgementContext
) -> SlotStates:
    """Returns the states of all slots of a period.

    A slot is bad if a majority of the observers that know it find it bad, good if a majority finds
    it good, and disputed (unknown) otherwise.
    """
    slot_ns = nanoseconds(objective.slot)
    count = -(-(period.end_ns - period.start_ns) // slot_ns)
    if count > limits.SLA_SLOTS:
        raise UsageError(
            f"The period {period.label} has {count:,} slots.",
            "Use longer slots or shorter periods.",
        )
    votes = np.zeros(count, dtype=np.int16)
    voters = np.zeros(count, dtype=np.int16)
    for stream in streams:
        inside = outside_exclusions(
            stream.between(period.start_ns, period.end_ns), around.exclusions
        )
        states = _observed(objective, inside, period.start_ns, slot_ns, count)
        if around.holds_ns:
            states = _held(states, around.holds_ns // slot_ns)
        votes += np.where(states == UNKNOWN, 0, 2 * states - 1).astype(np.int16)
        voters += states != UNKNOWN
    states = np.select([votes > 0, votes < 0], [OK, FAILED], UNKNOWN).astype(np.int8)
    early = slice(0, max(0, (around.good_before_ns - period.start_ns) // slot_ns))
    states[early][states[early] == UNKNOWN] = OK
    excluded = np.zeros(count, dtype=bool)
    for start_ns, end_ns in around.exclusions:
        first = -((period.start_ns - start_ns) // slot_ns)
        excluded[max(0, first) : max(0, (end_ns - period.start_ns) // slot_ns)] = True
    disputed = int(((voters > 0) & (votes == 0) & ~excluded).sum())
    return SlotStates(states, excluded, disputed, slot_ns)


def outside_exclusions(stream: Stream, exclusions: Sequence[Times]) -> Stream:
    """Returns the events that lie in no exclusion."""
    keep = np.ones(stream.times_ns.size, dtype=bool)
    for start_ns, end_ns in exclusions:
        keep &= (stream.times_ns < start_ns) | (stream.times_ns >= end_ns)
    return stream if keep.all() else stream.part(keep)


def _observed(
    objective: Objective, stream: Stream, start_ns: int, slot_ns: int, count: int
) -> States:
    """Returns what one observer knows of each slot."""
    judged = states_of(objective, stream)
    known = judged != UNKNOWN
    index = (stream.times_ns - start_ns) // slot_ns
    total = np.bincount(index[known], minlength=count)
    if objective.measure == "throughput":
        good = stream.states == OK
        weights = None if stream.requests is None else np.nan_to_num(stream.requests[good], nan=1.0)
        done = np.bincount(index[good], weights=weights, minlength=count)
        assert objective.at_least is not None
        bad = done < objective.at_least * slot_ns / NS
    else:
        failed = np.bincount(index[judged == FAILED], minlength=count)
        bad = _too_many(objective, failed, total)
    return np.where(total == 0, UNKNOWN, np.where(bad, FAILED, OK)).astype(np.int8)


def states_of(objective: Objective, stream: Stream) -> States:
    """Returns the states of events where an event that is not in time counts as failed.

    One that succeeded without a stated response time tells nothing about time: it is unknown.
    """
    limit = objective.under if objective.within is None else objective.within
    if limit is None:
        return stream.states
    if stream.response_ms is None:
        return np.where(stream.states == OK, UNKNOWN, stream.states).astype(np.int8)
    in_time = np.less if objective.within is None else np.less_equal
    timed = np.where(in_time(stream.response_ms, nanoseconds(limit) / 1e6), OK, FAILED)
    timed = np.where(np.isnan(stream.response_ms), UNKNOWN, timed)
    return np.where(stream.states == OK, timed, stream.states).astype(np.int8)


def _too_many(
    objective: Objective, failed: NDArray[np.int64], total: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Returns whether the share of failed events makes a slot bad, in whole numbers."""
    if objective.failed_above is not None:
        limit = Fraction(objective.failed_above)
        return np.asarray(failed * limit.denominator > total * limit.numerator)
    limit = Fraction(objective.failed_at_least if objective.failed_at_least is not None else 1)
    return np.asarray((failed * limit.denominator >= total * limit.numerator) & (failed > 0))


def _held(states: States, slots: int) -> States:
    """The states with slots without events filled from the last one before them."""
    at = np.arange(states.size)
    last = np.maximum.accumulate(np.where(states == UNKNOWN, -1, at))
    fill = (states == UNKNOWN) & (last >= 0) & (at - last <= slots)
    return np.where(fill, states[np.maximum(last, 0)], states).astype(np.int8)


def lasting(flags: Flags, slots: int) -> Flags:
    """Returns the true values in runs of at least so many slots."""
    if slots <= 1:
        return flags
    result = np.zeros_like(flags)
    for start, end in zip(*runs_of(flags), strict=True):
        result[start:end] = end - start >= slots
    return result
