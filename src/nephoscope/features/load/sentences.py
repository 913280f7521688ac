"""Sentences on the counts of a load: what became of every request that was due, and overload."""

from __future__ import annotations

from collections.abc import Mapping

from nephoscope.core import units
from nephoscope.features.load.result import LoadAnalysis, LoadCounts
from nephoscope.report import wording

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


def notes_of(load: LoadAnalysis) -> list[str]:
    """Returns what trials state about themselves, each sentence with the number of trials."""
    return [
        f"{sentence} ({wording.plural(count, 'trial')} of {line.trials})"
        for line in load.lines
        for sentence, count in line.notes.items()
    ]


def _per_s(rate: float) -> str:
    return units.format_value(rate, "per_s").replace(" /s", "/s")
