"""The sides of a trial that start together, and how far apart they did.

All are prepared first; then each is told one moment a little ahead, and waits for it by its own
clock. What is between "go" and the first operation is then no more than a timer's lateness.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nephoscope import units
from nephoscope.runs.loads import Window
from nephoscope.targets import Peer, Running, Target, TargetTrial

LEAD_NS = 50_000_000
"""How far ahead the common start lies: longer than it takes to tell it to all sides."""

MOST_SKEW_NS = 1_000_000
"""Sides on one machine that start further apart than this get a note."""


@dataclass(slots=True)
class Side:
    """One probe of a trial: of a target that measures, or of the peer that serves.

    offset_ns: the clock there minus ours, as its `ready` line showed it; 0 where they are one.
    """

    target: str
    running: Running
    ready: Mapping[str, Any]
    offset_ns: int = 0

    @property
    def token(self) -> str:
        """Of a serving side: what a peer has to show."""
        return str(self.ready.get("token", ""))


async def started(
    name: str,
    target: Target,
    benchmark: str,
    params: Mapping[str, Any],
    *,
    deadline_s: float,
    limit_s: float,
    same_clock: bool,
    serve: str | None = None,
    peer: Peer | None = None,
    gap_meter: bool = False,
) -> Side:
    """Starts a probe and waits until it is prepared. BenchmarkFailed when it is not."""
    running = await target.start(
        benchmark, params, deadline_s, serve=serve, peer=peer, gap_meter=gap_meter
    )
    try:
        ready = await running.ready(limit_s)
    except BaseException:
        await running.end()
        raise
    offset_ns = 0
    if not same_clock and isinstance(ready.get("wall_ns"), int):
        offset_ns = ready["wall_ns"] - time.time_ns()
    return Side(name, running, ready, offset_ns)


async def go(sides: Sequence[Side]) -> int:
    """Tells all sides to start at one moment; returns it on our wall clock (ns)."""
    if len(sides) == 1:
        await sides[0].running.go()
        return time.time_ns()
    at_ns = time.time_ns() + LEAD_NS
    for side in sides:
        await side.running.go(at_ns + side.offset_ns)
    return at_ns


def starts_ns(sides: Sequence[Side], trials: Mapping[int, TargetTrial]) -> list[int]:
    """When each side began, on our wall clock; only those that say it. trials: by id(side)."""
    found = []
    for side in sides:
        trial = trials.get(id(side))
        if trial is not None and trial.done is not None and trial.done.started_wall_ns is not None:
            found.append(trial.done.started_wall_ns - side.offset_ns)
    return found


def skew_ns(starts: Sequence[int], sides: int) -> int | None:
    """How far apart the first and the last side began; None unless several told it."""
    return max(starts) - min(starts) if sides > 1 and len(starts) == sides else None


def skew_note(skew: int | None, *, one_machine: bool) -> str:
    """A sentence on sides that began too far apart; empty when they did not."""
    if skew is None or not one_machine or skew <= MOST_SKEW_NS:
        return ""
    return (
        f"The sides began {units.format_value(skew, 'ns')} apart; "
        f"{units.format_value(MOST_SKEW_NS, 'ns')} is what one machine should keep."
    )


def window_of(
    sides: Sequence[Side], trials: Mapping[int, TargetTrial], begun_ns: int, ended_ns: int
) -> Window:
    """The measured time: from the first side's start to the last side's end, on our clock."""
    starts, ends = [], []
    for side in sides:
        trial = trials.get(id(side))
        if trial is not None and trial.done is not None and trial.done.started_wall_ns is not None:
            start = trial.done.started_wall_ns - side.offset_ns
            starts.append(start)
            ends.append(start + trial.done.elapsed_ns)
    if not starts:
        return Window(begun_ns, ended_ns)
    return Window(min(starts), max(ends))
