"""Sentences on the events of a verdict and on how they were counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from nephoscope.core import units
from nephoscope.core.records import dataclass
from nephoscope.features.sla.events import UNNAMED, EventCounts, Stream
from nephoscope.features.sla.periods import NS, is_rolling, periods_between, text_of
from nephoscope.features.sla.terms import Agreement, nanoseconds

_DAYS_FROM_S = 2 * 86_400
"""Time from which days are named instead of hours."""


@dataclass(frozen=True, slots=True)
class Span:
    """First and last event of a service, and the median distance of its events, in ns."""

    first_ns: int
    last_ns: int
    step_ns: int


def span_of(streams: Iterable[Stream]) -> Span:
    """Returns the span of the events of all observers; the distance is the shortest of theirs."""
    times = [stream.times_ns for stream in streams]
    steps = [int(np.median(np.diff(stamps))) for stamps in times if stamps.size > 1]
    first_ns, last_ns = (
        min(int(stamps[0]) for stamps in times),
        max(int(stamps[-1]) for stamps in times),
    )
    return Span(first_ns, last_ns, min(steps, default=0))


def notes(
    agreement: Agreement,
    events: EventCounts,
    spans: Mapping[str, Span],
    now_ns: int,
    holds_ns: int,
) -> Iterator[str]:
    """Yields the notes of a verdict."""
    yield from agreement.notes
    if agreement.service and set(spans).isdisjoint({agreement.service, UNNAMED}):
        yield (
            f"The terms are those of the service {agreement.service}, which the events do not "
            "name: every service of the events is judged by them."
        )
    if events.duplicates:
        yield f"{_counted(events.duplicates, 'duplicate event')} counted once."
    if events.backward:
        yield (
            f"{_counted(events.backward, 'event')} earlier than the row before (a clock that was "
            "set back, or merged files); each counts at its own time."
        )
    last_ns = max(span.last_ns for span in spans.values())
    if last_ns > now_ns:
        yield (
            f"The last event ({text_of(last_ns)}) lies after {text_of(now_ns)}, which counts as "
            "now; check the clocks, or --now."
        )
    step_ns = max(span.step_ns for span in spans.values())
    yield from _silence(agreement, last_ns, now_ns, step_ns)
    yield from _before_the_first(agreement, spans)
    slotted = [
        objective
        for objective in agreement.objectives
        if objective.measure in ("availability", "throughput")
    ]
    if slotted and not holds_ns:
        yield "Slots without events count neither as good nor as bad."
        yield from _wide_steps(min(nanoseconds(objective.slot) for objective in slotted), step_ns)


def _counted(count: int, what: str) -> str:
    return f"1 {what} was" if count == 1 else f"{count:,} {what}s were"


def _silence(agreement: Agreement, last_ns: int, now_ns: int, step_ns: int) -> Iterator[str]:
    """Says that the events end before what is judged ends. step_ns: distance of the events."""
    since_s = max(0, now_ns - last_ns) / NS
    since = units.format_duration(since_s)
    if since_s > _DAYS_FROM_S:
        since = f"{since_s / 86_400:,.0f} days"
    head = f"The last event is of {text_of(last_ns, agreement.time_zone)}, {since} before now"
    if is_rolling(agreement):
        slot_ns = nanoseconds(agreement.objectives[0].slot)
        end_ns = (last_ns // slot_ns + 1) * slot_ns
        if now_ns - last_ns > 2 * max(slot_ns, step_ns):
            yield f"{head}. --now {text_of(end_ns)} judges the window that ends with it."
        return
    later = periods_between(agreement, last_ns, now_ns - 1)[1:] if now_ns > last_ns else []
    if later:
        names = later[0].label if len(later) == 1 else f"{later[0].label} to {later[-1].label}"
        yield f"{head}: there is no verdict on {names}, which has no events."


def _before_the_first(agreement: Agreement, spans: Mapping[str, Span]) -> Iterator[str]:
    if agreement.first_period is None:
        return
    first_ns = min(span.first_ns for span in spans.values())
    begin_ns = periods_between(agreement, first_ns, max(s.last_ns for s in spans.values()))
    if begin_ns and first_ns < begin_ns[0].start_ns:
        yield (
            f"Events before {text_of(begin_ns[0].start_ns, agreement.time_zone)}, the start of the "
            "first period, are not judged."
        )


def _wide_steps(slot_ns: int, step_ns: int) -> Iterator[str]:
    if step_ns > slot_ns:
        step, slot = (units.written(duration_ns, "ns") for duration_ns in (step_ns, slot_ns))
        yield (
            f"The events are {step} apart and the slots {slot} long, so that most slots have none: "
            f"--holds {step} lets an event stand for the slots until the next one."
        )
