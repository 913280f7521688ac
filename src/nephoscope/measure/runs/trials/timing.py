"""How far apart the sides of a trial started, and the time that they measured."""

from __future__ import annotations

from collections.abc import Mapping

from nephoscope.core import units
from nephoscope.core.records import dataclass
from nephoscope.measure.targets import TargetTrial
from nephoscope.measure.targets.session import Side

MOST_SKEW_NS = 1_000_000
"""Sides on one machine that start further apart than this get a note."""


@dataclass(frozen=True, slots=True)
class Window:
    """The measured time of a trial, on our wall clock, ns since the epoch."""

    start_ns: int
    end_ns: int

    def covered(self, start_ns: int, end_ns: int) -> int:
        """Returns how much of it an interval covers."""
        return max(0, min(self.end_ns, end_ns) - max(self.start_ns, start_ns))


def _spans_ns(
    sides: Mapping[str, Side], trials: Mapping[str, TargetTrial]
) -> dict[str, tuple[int, int]]:
    """Returns when each side began and ended, on our wall clock; only those that say it."""
    spans = {}
    for name, side in sides.items():
        trial = trials.get(name)
        if trial is not None and trial.done is not None and trial.done.started_wall_ns is not None:
            start_ns = trial.done.started_wall_ns - side.offset_ns
            spans[name] = (start_ns, start_ns + trial.done.elapsed_ns)
    return spans


def late_starts_ns(sides: Mapping[str, Side], trials: Mapping[str, TargetTrial]) -> dict[str, int]:
    """Returns how long after the first one each side began; only of those that say it."""
    spans = _spans_ns(sides, trials)
    first_ns = min((start for start, _ in spans.values()), default=0)
    return {name: start - first_ns for name, (start, _) in spans.items()}


def skew_ns(sides: Mapping[str, Side], trials: Mapping[str, TargetTrial]) -> int | None:
    """Returns how far apart the first and the last side began; None unless several told it.

    sides, trials: by the target that a trial is of.
    """
    starts = [start for start, _ in _spans_ns(sides, trials).values()]
    return max(starts) - min(starts) if len(sides) > 1 and len(starts) == len(sides) else None


def skew_note(skew: int | None, *, one_machine: bool) -> str:
    """A sentence on sides that began too far apart; empty when they did not."""
    if skew is None or not one_machine or skew <= MOST_SKEW_NS:
        return ""
    return (
        f"The sides began {units.format_value(skew, 'ns')} apart; "
        f"{units.format_value(MOST_SKEW_NS, 'ns')} is what one machine should keep."
    )


def window_of(
    sides: Mapping[str, Side], trials: Mapping[str, TargetTrial], begun_ns: int, ended_ns: int
) -> Window:
    """The measured time: from the first side's start to the last side's end, on our clock."""
    spans = _spans_ns(sides, trials).values()
    if not spans:
        return Window(begun_ns, ended_ns)
    return Window(min(start for start, _ in spans), max(end for _, end in spans))
