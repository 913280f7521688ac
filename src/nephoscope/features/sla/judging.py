"""Judges objectives by events: shares of good ones, mean and maximum of the response time.

Events of probes are a sample of what users saw: their share has exact binomial bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from nephoscope.features.sla import credit
from nephoscope.features.sla.coverage import coverage
from nephoscope.features.sla.events import FAILED, OK, UNKNOWN, Stream
from nephoscope.features.sla.objectives import (
    ObjectiveVerdict,
    Word,
    bounded_share,
    error_budget,
    event_target,
    in_progress,
    of_slots,
    sentence,
    word,
)
from nephoscope.features.sla.periods import Period
from nephoscope.features.sla.slots import JudgementContext, outside_exclusions, states_of
from nephoscope.features.sla.terms import TIMED, Objective, nanoseconds
from nephoscope.stats.statistics.means import mean_t
from nephoscope.stats.statistics.values import Refused

_RANKS = {"p50": 500, "p90": 900, "p95": 950, "p99": 990, "max": 1000}
"""Name -> per mille."""


def judge(
    objective: Objective, streams: Sequence[Stream], period: Period, around: JudgementContext
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
    objective: Objective, streams: Sequence[Stream], period: Period, around: JudgementContext
) -> ObjectiveVerdict:
    good, total = (sum(counts) for counts in zip(*(_good(objective, s) for s in streams)))  # noqa: B905
    target = event_target(objective)
    share, long_run = bounded_share(good, total, target, around.confidence)
    exact = Fraction(good, total) if total else Fraction(0)
    low, high = exact, exact
    if share is not None and objective.basis == "sample":
        assert share.low is not None
        assert share.high is not None
        low, high = Fraction(share.low), Fraction(share.high)
    time = coverage(streams, period, around)
    if objective.measure == "scaling_time":
        # A time without steps of the demand is no gap in the data.
        time = replace(time, missing_ns=0, longest=None)
    # Events of the time without data were all bad, or all good.
    seen = time.share if total else Fraction(0)
    low, high = low * seen, high * seen + (1 - seen)
    finished = period.end_ns <= around.now_ns
    verdict: Word = word(low, high, target) if total else "undecided"
    if not finished and (objective.basis == "census" or verdict == "met"):
        verdict = "undecided"
    reasons = [in_progress(period, around)]
    if not total:
        reasons.append(_nothing_known(streams))
    reasons.append(time.sentence(around.zone))
    if verdict == "undecided" and finished and total and not time.missing_ns:
        reasons.append(f"The bounds of {total} events include the objective; get more events.")
    owed, possible = (
        float(credit.share_of_tiers(objective, bound)) if objective.credits else None
        for bound in (high, low)
    )
    return ObjectiveVerdict(
        measure=objective.measure,
        objective=sentence(objective),
        verdict=verdict,
        reason=" ".join(filter(None, reasons)),
        unit="events",
        total=total,
        good=good,
        bad=total - good,
        unknown=sum(int((stream.states == UNKNOWN).sum()) for stream in streams),
        target=float(target),
        share=share,
        share_min=float(low) if time.missing_ns else None,
        share_max=float(high) if time.missing_ns else None,
        missing_share=float(1 - time.share),
        long_run=long_run,
        budget=error_budget(total, total, total - good, target, None, {}),
        response_ms=_percentiles(streams) if objective.measure in TIMED else {},
        owed_share=owed,
        possible_share=possible,
    )


def _nothing_known(streams: Sequence[Stream]) -> str:
    if any((stream.states != UNKNOWN).any() for stream in streams):
        return "No event tells about this objective."
    return "The period has no events."


def _good(objective: Objective, stream: Stream) -> tuple[int, int]:
    """Numbers of good and of all events; failed ones are never good, unknown ones do not count."""
    if objective.measure == "jitter":
        if stream.response_ms is None or objective.under is None:
            return 0, 0
        variation = np.abs(np.diff(stream.response_ms[stream.states == OK]))
        stated = ~np.isnan(variation)
        limit_ms = nanoseconds(objective.under) / 1e6
        return int((variation[stated] < limit_ms).sum()), int(stated.sum())
    judged = states_of(objective, stream)
    return int((judged == OK).sum()), int((judged != UNKNOWN).sum())


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
    objective: Objective, streams: Sequence[Stream], period: Period, around: JudgementContext
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
    time = coverage(streams, period, around)
    finished = period.end_ns <= around.now_ns
    reasons = [in_progress(period, around)]
    if not times_ms.size:
        words = ["undecided"]
        reasons.append("No event states a response time.")
    elif failed and objective.mean is not None:
        counted = "1 request" if failed == 1 else f"{failed} requests"
        reasons.append(f"{counted} failed without a response time: the mean is of the others.")
        words = [word if word == "violated" else "undecided" for word in words]
    reasons.append(time.sentence(around.zone))
    verdict: Word = "violated" if "violated" in words else "undecided"
    if finished and set(words) == {"met"} and not time.missing_ns:
        verdict = "met"
    return ObjectiveVerdict(
        measure=objective.measure,
        objective=sentence(objective),
        verdict=verdict,
        reason=" ".join(filter(None, reasons)),
        unit="ns",
        total=int(times_ms.size) + failed,
        good=int(times_ms.size) - over,
        bad=over + failed,
        unknown=sum(int((stream.states == UNKNOWN).sum()) for stream in streams),
        share=estimate,
        missing_share=float(1 - time.share),
        response_ms=_percentiles(streams),
    )
