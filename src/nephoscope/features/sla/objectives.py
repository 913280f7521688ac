"""Judges objectives by slots over one period: what was observed, its bounds, and the verdict.

Slots are a census: their share is a fact but for the slots of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from nephoscope.core import units
from nephoscope.core.model import Estimate
from nephoscope.features.sla import credit
from nephoscope.features.sla.coverage import no_data
from nephoscope.features.sla.events import FAILED, UNKNOWN, Stream
from nephoscope.features.sla.outage_bounds import bounded_share_of_slots
from nephoscope.features.sla.periods import NS, Period, text_of
from nephoscope.features.sla.slots import JudgementContext, SlotStates, lasting, slot_states
from nephoscope.features.sla.terms import Objective, nanoseconds, percent
from nephoscope.stats.statistics.proportions import exact_bounds
from nephoscope.stats.statistics.values import runs_of

Word = Literal["met", "violated", "undecided"]
BURN_WINDOWS = (("5min", 300), ("30min", 1800), ("1h", 3600), ("6h", 21_600), ("3d", 259_200))
"""Windows of burn rates, name and seconds."""


@dataclass(frozen=True, slots=True)
class Outage:
    """A violation period: consecutive bad slots."""

    start: str
    end: str
    duration_s: float


@dataclass(frozen=True, slots=True)
class ErrorBudget:
    """The bad share that an objective allows, and its use.

    allowed: slots or events of the whole period, allowed_s: the same as time. used_ratio: 1 is all
    of it. burn_rate: bad share over the allowed share; 1 uses the budget exactly in a period.
    burn_rates: by window before now, or before the end of a period that is over; null where nothing
    is known of that window.
    """

    allowed: float
    allowed_s: float | None
    used_ratio: float | None
    burn_rate: float | None
    burn_rates: dict[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveVerdict:
    """The verdict on one objective in one period.

    total: slots or events, without excluded ones. share: of good ones among those known, with
    one-sided bounds, each with this confidence by itself: exact ones of events, and of slots those
    of `outage_bounds`. share_min, share_max: if all
    unknown slots, or all events of the time without data, were bad or good. missing_share: of the
    time of the period until now without data. long_run: whether the bounds prove the objective for
    the service as such, beyond this period. unit: slots, events, or ns for means. response_ms:
    percentiles of the response time by nearest rank; null where that request failed, which counts
    as longest.
    """

    measure: str
    objective: str
    verdict: Word
    reason: str
    unit: str
    total: int
    good: int
    bad: int
    unknown: int
    disputed: int = 0
    excluded: int = 0
    target: float | None = None
    share: Estimate | None = None
    share_min: float | None = None
    share_max: float | None = None
    missing_share: float | None = None
    long_run: Word | None = None
    budget: ErrorBudget | None = None
    outages: tuple[Outage, ...] = ()
    downtime_s: float | None = None
    response_ms: Mapping[str, float | None] = field(default_factory=dict)
    owed_share: float | None = None
    possible_share: float | None = None


def sentence(objective: Objective) -> str:
    """Returns the objective in words."""
    target = "" if objective.target is None else f"at least {percent(objective.target)}"
    in_time = _in_time(objective)
    if objective.measure == "response_time" and objective.target is None:
        limits = [
            f"{name} response time at most {units.written(nanoseconds(value), 'ns')}"
            for name, value in (("mean", objective.mean), ("maximum", objective.maximum))
            if value is not None
        ]
        return " and ".join(limits)
    if objective.at_most is not None:
        return f"at least {percent(1 - objective.at_most)} of events good"
    if objective.measure == "durability":
        share = percent(Decimal(f"{float(event_target(objective)):.12g}"))
        years = "a year" if objective.years in (None, 1) else f"{objective.years:g} years"
        return f"at least {share} of objects retained over {years}"
    return {
        "availability": f"availability {target}{in_time and f' with responses {in_time}'}",
        "response_time": f"{target} of requests {in_time}",
        "throughput": f"{target} of slots with {objective.at_least or 0:g} requests/s or more",
        "jitter": f"{target} of delay variations {in_time}",
        "scaling_time": f"{target} of demand steps served {in_time}",
    }[objective.measure]


def _in_time(objective: Objective) -> str:
    """Returns the limit of the response time of a good event in words; empty without one."""
    for name, limit in (("under", objective.under), ("within", objective.within)):
        if limit is not None:
            return f"{name} {units.written(nanoseconds(limit), 'ns')}"
    return ""


def event_target(objective: Objective) -> Fraction:
    """Returns the share of good events that an objective asks for."""
    if objective.at_most is not None:
        return 1 - Fraction(objective.at_most)
    assert objective.target is not None
    if objective.measure == "durability" and objective.years:
        return Fraction(Decimal(objective.target) ** Decimal(repr(objective.years)))
    return Fraction(objective.target)


def word(lowest: Fraction | float, highest: Fraction | float, target: Fraction) -> Word:
    """Returns met if even the lowest share reaches the target, violated if no share does."""
    if lowest >= target:
        return "met"
    return "violated" if highest < target else "undecided"


def of_slots(
    objective: Objective, streams: Sequence[Stream], period: Period, around: JudgementContext
) -> ObjectiveVerdict:
    """Returns the verdict on an objective that judges each slot good or bad."""
    slots = slot_states(objective, streams, period, around)
    shortest = -(-nanoseconds(objective.min_outage or 0) // slots.slot_ns)
    down = lasting(slots.down, shortest)
    bad, unknown = int(down.sum()), int(slots.unknown.sum())
    worst = int(lasting(slots.down | slots.unknown, shortest).sum())
    total = int((~slots.excluded).sum())
    assert objective.target is not None
    target = Fraction(objective.target)
    known = total - unknown
    low, high = (1 - Fraction(count, total) if total else Fraction(1) for count in (worst, bad))
    verdict = word(low, high, target) if known else "undecided"
    slot_s = slots.slot_ns / NS
    outages = tuple(
        Outage(
            text_of(period.start_ns + int(start) * slots.slot_ns, around.zone),
            text_of(min(period.end_ns, period.start_ns + int(end) * slots.slot_ns), around.zone),
            float((end - start) * slot_s),
        )
        for start, end in zip(*runs_of(down), strict=True)
    )
    share = bounded_share_of_slots(down, known, slot_s, around.confidence)
    owed, possible = (
        _credit_of_slots(objective, worst_share, count * Fraction(slots.slot_ns, NS))
        for worst_share, count in ((high, bad), (low, worst))
    )
    elapsed = max(0, min(slots.states.size, (around.now_ns - period.start_ns) // slots.slot_ns))
    elapsed_slots = ~slots.excluded[:elapsed]
    missing = Fraction(1)
    if elapsed_slots.any():
        missing = Fraction(int(slots.unknown[:elapsed].sum()), int(elapsed_slots.sum()))
    return ObjectiveVerdict(
        measure=objective.measure,
        objective=sentence(objective),
        verdict=verdict,
        reason=_reason(verdict, in_progress(period, around), slots, missing),
        unit="slots",
        total=total,
        good=known - bad,
        bad=bad,
        unknown=unknown,
        disputed=slots.disputed,
        excluded=int(slots.excluded.sum()),
        target=float(target),
        share=share,
        share_min=float(low),
        share_max=float(high),
        missing_share=float(missing),
        long_run=None if share is None else word(share.low or 0.0, share.high or 0.0, target),
        budget=error_budget(total, known, bad, target, slot_s, _burn_rates(slots, target, elapsed)),
        outages=outages,
        downtime_s=bad * slot_s,
        owed_share=owed,
        possible_share=possible,
    )


def in_progress(period: Period, around: JudgementContext) -> str:
    """Returns a sentence on a period that is not over; empty for one that is."""
    if period.end_ns <= around.now_ns:
        return ""
    return f"The period is in progress until {text_of(period.end_ns, around.zone)}."


def _reason(verdict: Word, progress: str, slots: SlotStates, missing: Fraction) -> str:
    parts = [progress] if progress else []
    unknown = int(slots.unknown.sum())
    if slots.disputed:
        parts.append(f"The observers disagree on {slots.disputed:,} slots.")
    if verdict == "undecided":
        what = "slot" if unknown == 1 else "slots"
        parts.append(f"The verdict depends on {unknown:,} {what} of which nothing is known.")
    elif unknown:
        parts.append(f"{unknown:,} slots of which nothing is known cannot change the verdict.")
    if missing:
        parts.append(f"{no_data(missing)}.")
    return " ".join(parts)


def _credit_of_slots(objective: Objective, share: Fraction, downtime_s: Fraction) -> float | None:
    if objective.credit_per_downtime is not None:
        return float(credit.share_of_downtime(objective, downtime_s))
    return float(credit.share_of_tiers(objective, share)) if objective.credits else None


def bounded_share(
    good: int, known: int, target: Fraction, confidence: float
) -> tuple[Estimate | None, Word | None]:
    """Returns the share of good events with its exact bounds, and the verdict of the bounds."""
    if not known:
        return None, None
    low, high = exact_bounds(good, known, confidence=confidence)
    method = "share of events; exact one-sided binomial bounds (Clopper and Pearson), independent"
    estimate = Estimate(good / known, low, high, confidence, known, "ratio", method)
    return estimate, word(low, high, target)


def error_budget(
    total: int,
    known: int,
    bad: int,
    target: Fraction,
    slot_s: float | None,
    burn_rates: dict[str, float | None],
) -> ErrorBudget:
    """Returns the budget of an objective and its use by the bad slots or events."""
    allowed = total * (1 - target)
    return ErrorBudget(
        float(allowed),
        None if slot_s is None else float(allowed) * slot_s,
        float(bad / allowed) if allowed and known else None,
        float(Fraction(bad, known) / (1 - target)) if known and target < 1 else None,
        burn_rates,
    )


def _burn_rates(slots: SlotStates, target: Fraction, last: int) -> dict[str, float | None]:
    """Burn rates of the windows that end with this number of slots."""
    known = (slots.states != UNKNOWN) & ~slots.excluded
    rates: dict[str, float | None] = {}
    for name, seconds in BURN_WINDOWS:
        window = slice(max(0, last - max(1, seconds * NS // slots.slot_ns)), last)
        seen = int(known[window].sum())
        bad = int((slots.states[window] == FAILED)[known[window]].sum())
        rates[name] = bad / seen / float(1 - target) if seen and target < 1 else None
    return rates
