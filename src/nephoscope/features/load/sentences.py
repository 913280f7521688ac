"""Sentences on the counts of a load: what became of every request that was due, and overload."""

from __future__ import annotations

from collections.abc import Mapping

from nephoscope.core import units
from nephoscope.features.load.generators import SharedLoadCounts
from nephoscope.features.load.result import LoadAnalysis, LoadCounts
from nephoscope.report import wording

BUSY_RATIO = 0.95
"""Of a CPU, from which on a thread of a generator may be the limit; as the probe has it."""
CLOCK_OFFSET_NS = 1_000_000
"""Clocks that are set by a network differ by less."""
LATE_START_NS = 1_000_000
"""What one machine should keep; see measure/runs/trials/timing.py."""

WORDS = {
    "timeout": "timed out",
    "unsent": "never sent (every connection was busy)",
    "refused": "refused",
    "reset": "reset",
    "closed_early": "closed early",
}
"""Kinds of errors in words, where their names are none."""


def overload(line: LoadCounts) -> str:
    """Returns that a server did not keep up with the offered rate; empty where it did."""
    if not line.is_overloaded or line.offered_per_s is None:
        return ""
    served, offered = (_per_s(rate) for rate in (line.served_per_s, line.offered_per_s))
    text = f"Overloaded: served {served} of {offered} offered"
    if not line.unanswered_count:
        return f"{text}; requests waited in a queue that grew, so that latency rises with time."
    return (
        f"{text}; {line.unanswered_count:,} of {line.due_count:,} requests due had no answer. "
        "Percentiles that they reach are lower bounds (≥) that grow with the length of a trial."
    )


def became(line: LoadCounts) -> str:
    """Returns what became of the requests due; the parts add up to the whole."""
    text = (
        f"{line.completed_count:,} valid responses of {line.due_count:,} requests due; "
        f"errors: {errors_text(line.errors_count)}."
    )
    if line.unasked_count:
        times = wording.plural(line.unasked_count, "time")
        text += f" The server sent bytes that no request asked for {times}."
    return text


def bounds(line: LoadCounts) -> str:
    """Returns that some latencies are lower bounds, where no overload says so; else empty."""
    if not line.unanswered_count or overload(line):
        return ""
    return (
        f"{line.unanswered_count:,} of {line.due_count:,} requests due had no answer; percentiles "
        "that they reach are lower bounds (≥)."
    )


def errors_text(errors: Mapping[str, int]) -> str:
    """Returns 'none', or '3 refused, 12 timed out'."""
    kinds = sorted(errors.items())
    return ", ".join(f"{count:,} {WORDS.get(kind, kind)}" for kind, count in kinds) or "none"


def conservation(shared: SharedLoadCounts) -> str:
    """Returns that the counts of generators add up, or what is missing; warm-up included."""
    who = wording.plural(len(shared.generators), "generator")
    sums = (
        f"{shared.due_count:,} requests due on {who} = {shared.completed_count:,} answered + "
        f"{shared.failed_count:,} failed"
    )
    if shared.lost_count is None:
        return (
            f"{sums} + an unknown number that was lost with a generator: a closed loop has no "
            "schedule that would tell."
        )
    sums += f" + {shared.lost_count:,} lost"
    if shared.is_conserved:
        whole = "" if shared.scheduled_count is None else ", as many as the schedule has"
        about = " (lost: estimated from the other generators)" if shared.is_lost_estimated else ""
        return f"{sums}{whole}{about}."
    schedule = (
        ""
        if shared.scheduled_count in (None, shared.due_count)
        else f"; the schedule has {shared.scheduled_count:,}"
    )
    return f"The counts do not add up: {sums}{schedule}. Do not use these results."


def starts(shared: SharedLoadCounts) -> str:
    """Returns how far apart the generators began, where several of them state it."""
    late = [g.late_start_ns for g in shared.generators if g.late_start_ns is not None]
    if len(late) < 2:
        return ""
    return f"They began within {units.format_value(max(late), 'ns')} of each other."


def limits(shared: SharedLoadCounts) -> list[str]:
    """Returns a sentence for each generator that failed, was the limit or had a skewed clock."""
    out: list[str] = []
    for generator in shared.generators:
        name = generator.name
        for reason, count in generator.failures.items():
            trials = wording.plural(count, "trial")
            lost = (
                "an unknown number of"
                if generator.lost_count is None
                else (f"{generator.lost_count:,}")
            )
            out.append(
                f"{name} failed in {trials} of {generator.trials}, and {lost} requests with it: "
                f"{reason.rstrip('.')}."
            )
        if (generator.busy_ratio or 0.0) > BUSY_RATIO:
            out.append(
                f"{name} used {wording.percent(generator.busy_ratio)} of a CPU: the generator may "
                "be the limit. Add generators, or threads."
            )
        offset = generator.clock_offset_ns or 0
        if abs(offset) > CLOCK_OFFSET_NS:
            out.append(
                f"The clock of {name} appeared {units.format_value(abs(offset), 'ns')} "
                f"{'ahead of' if offset > 0 else 'behind'} that of this machine, with the delay of "
                "the message that showed it; its starts are as exact as that."
            )
    late = [g for g in shared.generators if (g.late_start_ns or 0) > LATE_START_NS]
    out += [
        f"{g.name} began up to {units.format_value(g.late_start_ns or 0, 'ns')} after the first "
        "generator: the load was not whole until then."
        for g in late
    ]
    return out


def notes_of(load: LoadAnalysis) -> list[str]:
    """Returns what trials state about themselves, each sentence with the number of trials."""
    return [
        f"{sentence} ({wording.plural(count, 'trial')} of {line.trials})"
        for line in load.lines
        for sentence, count in line.notes.items()
    ]


def _per_s(rate: float) -> str:
    return units.format_value(rate, "per_s").replace(" /s", "/s")
