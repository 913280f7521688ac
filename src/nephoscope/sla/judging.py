"""Judges objectives by events: shares of good ones, mean and maximum of the response time.

Events of probes are a sample of what users saw: their share has exact binomial bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np

from nephoscope.analysis.statistics.means import mean_t
from nephoscope.analysis.statistics.values import Refused
from nephoscope.sla import credit
from nephoscope.sla.events import FAILED, OK, UNKNOWN, Stream
from nephoscope.sla.objectives import (
    ObjectiveVerdict,
    Word,
    bounded_share,
    error_budget,
    of_slots,
    sentence,
    word,
)
from nephoscope.sla.periods import Period
from nephoscope.sla.slots import Circumstances, outside_exclusions
from nephoscope.sla.terms import Objective, nanoseconds

_RANKS = {"p50": 500, "p90": 900, "p95": 950, "p99": 990, "max": 1000}
"""Name -> per mille."""


def judge(
    objective: Objective, streams: Sequence[Stream], period: Period, around: Circumstances
) -> ObjectiveVerdict:
    """Returns the verdict on an objective from the events of all observers of a service."""
    if objective.measure in ("availability", "throughput"):
        return of_slots(objective, streams, period, around)
    inside = [
        outside_exclusions(stream.between(period.start_ns, period.end_ns), around.exclusions)
        for stream in streams
    ]
    if objective.mean is not None or objective.maximum is not None:
        return _of_times(objective, inside, period, around)
    return _of_events(objective, inside, period, around)


def _of_events(
    objective: Objective, streams: Sequence[Stream], period: Period, around: Circumstances
) -> ObjectiveVerdict:
    good, total = (sum(counts) for counts in zip(*(_good(objective, s) for s in streams)))  # noqa: B905
    target = _event_target(objective)
    share, long_run = bounded_share(good, total, target, around.confidence, "events")
    exact = Fraction(good, total) if total else Fraction(1)
    low, high = exact, exact
    if share is not None and objective.basis == "sample":
        assert share.low is not None
        assert share.high is not None
        low, high = Fraction(share.low), Fraction(share.high)
    finished = period.end_ns <= around.now_ns
    verdict: Word = word(low, high, target) if total else "undecided"
    if not finished and (objective.basis == "census" or verdict == "met"):
        verdict = "undecided"
    reason = "" if finished else "The period is not over."
    if not total:
        reason = "No event tells about this objective."
    elif verdict == "undecided" and finished:
        reason = f"The bounds of {total} events include the objective; more events are needed."
    owed, possible = (
        float(credit.share_of_tiers(objective, bound)) if objective.credits else None
        for bound in (high, low)
    )
    return ObjectiveVerdict(
        measure=objective.measure,
        objective=sentence(objective),
        verdict=verdict,
        reason=reason,
        unit="events",
        total=total,
        good=good,
        bad=total - good,
        unknown=sum(int((stream.states == UNKNOWN).sum()) for stream in streams),
        target=float(target),
        share=share,
        long_run=long_run,
        budget=error_budget(total, total, total - good, target, None, {}),
        response_ms=_percentiles(streams) if objective.measure == "response_time" else {},
        owed_share=owed,
        possible_share=possible,
    )


def _event_target(objective: Objective) -> Fraction:
    """The share of good events that an objective asks for."""
    if objective.at_most is not None:
        return 1 - Fraction(objective.at_most)
    assert objective.target is not None
    if objective.measure == "durability" and objective.years:
        return Fraction(Decimal(objective.target) ** Decimal(repr(objective.years)))
    return Fraction(objective.target)


def _good(objective: Objective, stream: Stream) -> tuple[int, int]:
    """Numbers of good and of all events; failed ones are never good, unknown ones do not count."""
    known = stream.states != UNKNOWN
    good = stream.states == OK
    if objective.measure in ("loss", "durability"):
        return int(good.sum()), int(known.sum())
    assert objective.under is not None
    if stream.response_ms is None:
        return 0, 0
    limit_ms = nanoseconds(objective.under) / 1e6
    if objective.measure == "jitter":
        variation = np.abs(np.diff(stream.response_ms[good]))
        stated = ~np.isnan(variation)
        return int((variation[stated] < limit_ms).sum()), int(stated.sum())
    # A request that succeeded without a stated time tells nothing about time.
    counted = known & ~(good & np.isnan(stream.response_ms))
    return int((good & (stream.response_ms < limit_ms)).sum()), int(counted.sum())


def _percentiles(streams: Sequence[Stream]) -> dict[str, float | None]:
    """Percentiles of the response time by nearest rank; a failed request is longer than any."""
    parts = [
        np.where(stream.states == FAILED, np.inf, stream.response_ms)[stream.states != UNKNOWN]
        for stream in streams
        if stream.response_ms is not None
    ]
    times_ms = np.concatenate(parts) if parts else np.zeros(0)
    times_ms = np.sort(times_ms[~np.isnan(times_ms)])
    if not times_ms.size:
        return {}
    ranks = {name: -(-times_ms.size * share // 1000) for name, share in _RANKS.items()}
    values = {name: float(times_ms[max(1, rank) - 1]) for name, rank in ranks.items()}
    return {name: value if np.isfinite(value) else None for name, value in values.items()}


def _of_times(
    objective: Objective, streams: Sequence[Stream], period: Period, around: Circumstances
) -> ObjectiveVerdict:
    """Mean and maximum of the response time; a failed request has none, so that it decides."""
    parts = [s.response_ms[s.states == OK] for s in streams if s.response_ms is not None]
    times_ms = np.concatenate(parts) if parts else np.zeros(0)
    times_ms = times_ms[~np.isnan(times_ms)]
    failed = sum(int((stream.states == FAILED).sum()) for stream in streams)
    words: list[Word] = []
    estimate = None
    if objective.mean is not None and times_ms.size:
        try:
            estimate = mean_t(times_ms * 1e6, confidence=around.confidence, unit="ns")
        except Refused:
            words.append("undecided")
        else:
            limit_ns = nanoseconds(objective.mean)
            low = estimate.value if estimate.low is None else estimate.low
            high = estimate.value if estimate.high is None else estimate.high
            words.append(
                "met" if high <= limit_ns else "violated" if low > limit_ns else "undecided"
            )
    over = 0
    if objective.maximum is not None:
        over = int((times_ms > nanoseconds(objective.maximum) / 1e6).sum())
        words.append("violated" if over or failed else "met")
    finished = period.end_ns <= around.now_ns
    reason = "" if finished else "The period is not over."
    if not times_ms.size:
        words, reason = ["undecided"], "No event states a response time."
    elif failed and objective.mean is not None:
        reason = f"{failed} requests failed and have no response time: the mean is of the others."
        words = [word if word == "violated" else "undecided" for word in words]
    verdict: Word = "violated" if "violated" in words else "undecided"
    if finished and set(words) == {"met"}:
        verdict = "met"
    return ObjectiveVerdict(
        measure=objective.measure,
        objective=sentence(objective),
        verdict=verdict,
        reason=reason,
        unit="ns",
        total=int(times_ms.size) + failed,
        good=int(times_ms.size) - over,
        bad=over + failed,
        unknown=sum(int((stream.states == UNKNOWN).sum()) for stream in streams),
        share=estimate,
        response_ms=_percentiles(streams),
    )
