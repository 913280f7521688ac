"""What one observation of a target shows, with the pattern of each of its loops: the rules of
`infer` ask this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from nephoscope.core.records import dataclass
from nephoscope.features.scheduler.inference import onset, replenishments, shares, timing
from nephoscope.features.scheduler.inference.onset import Onset, Onsets
from nephoscope.features.scheduler.inference.replenishments import Replenishments
from nephoscope.features.scheduler.inference.timing import Pattern, Timing
from nephoscope.features.scheduler.inference.verdict import Loop, ObservationWindow, of_kind

_HALF_OF_LOSS = 0.5
_LEAST_STOPS, _LEAST_STOPPED = 5, 0.005
"""Stops and the time in them from which programs are stopped and continued: a page that has to be
read from disk stops a loop, too, but not in every second."""
_GRID_OF_TURNS = 0.8
_HALFWAY = 1.5
"""Half of the evidence that decides (see `onset`)."""
_MINOR = 0.25
"""Of what a mechanism took, so much may other programs take without being a second one."""


@dataclass(frozen=True, slots=True)
class View:
    """A window with the pattern of each of its loops.

    minor: a loss below it that follows no timer is another program's, beside a mechanism that does.
    """

    window: ObservationWindow
    loops: tuple[Timing, ...]

    minor: float = 0.0

    @property
    def lossy(self) -> tuple[Timing, ...]:
        """The loops that lost more than a little, and by no rule more than `minor`."""
        return tuple(
            loop_timing
            for loop_timing in self.loops
            if loop_timing.pattern is not Pattern.NONE
            and (
                loop_timing.pattern in (Pattern.REPLENISHMENTS, Pattern.CLOCKED)
                or loop_timing.lost >= self.minor
            )
        )

    @property
    def share(self) -> float:
        """Mean share of its loops."""
        return float(np.mean([loop_timing.loop.share for loop_timing in self.loops]))

    def all_are(self, pattern: Pattern) -> bool:
        """Returns whether every loop that lost anything did so in this way, and one did."""
        return bool(self.lossy) and all(
            loop_timing.pattern is pattern for loop_timing in self.lossy
        )


def view_of_kind(
    windows: Sequence[ObservationWindow],
    kind: str,
    losing: Sequence[Loop],
    grid: Replenishments | None,
    begun: Onsets,
) -> View | None:
    """Returns the window of a kind to go by: of the longest ones the one with the median share.

    losing: the loops that `grid` and `begun` were found in; a few short gaps of others would lie on
    any grid.
    """
    candidates = of_kind(windows, kind)
    if not candidates:
        return None
    longest_ns = max(window.window_ns for window in candidates)
    longest = [window for window in candidates if window.window_ns == longest_ns]
    longest.sort(key=lambda window: window.obtained_cpus)
    window = longest[(len(longest) - 1) // 2]
    starts = begun.starts if begun.onset is Onset.CLOCK else None
    loops = []
    for loop in window.loops:
        lost = any(loop is loser for loser in losing)
        timed = timing.of_loop(window, loop, grid if lost else None)
        if lost and starts is not None and not _may_be_turns(timed, begun):
            timed = timing.clocked(timed, starts)
        elif lost and timed.pattern is Pattern.TURNS and _may_be_clocked(timed, begun):
            timed = replace(timed, pattern=Pattern.IRREGULAR)
        loops.append(timed)
    return View(window, tuple(loops))


def _may_be_turns(timed: Timing, begun: Onsets) -> bool:
    """Returns whether a loop that could lose its CPU in turns may do so, for all that is known."""
    return timed.pattern is Pattern.TURNS and begun.are_turns_excluded is not True


def _may_be_clocked(timed: Timing, begun: Onsets) -> bool:
    """Returns whether what looks like turns could as well be a task that wakes by a timer.

    Every moment of a task that is set in whole milliseconds lies on a tick of 1 ms; longer ticks
    are seldom an accident.
    """
    if begun.are_turns_excluded is None:
        return timed.tick_ns == timing.SHORTEST_NS or begun.against_turns >= _HALFWAY
    return begun.are_turns_excluded


def observations_differ(busy: Sequence[ObservationWindow]) -> bool:
    """Returns whether observations of one kind show turns in one and a budget's grid in another."""
    patterns = [
        {
            timing.of_loop(window, loop).pattern
            for window in of_kind(busy, kind)
            for loop in window.loops
        }
        for kind in ("one", "all")
    ]
    return any({Pattern.TURNS, Pattern.REPLENISHMENTS} <= seen for seen in patterns)


def without_minor(one_cpu: View | None, every: View | None) -> tuple[View | None, View | None]:
    """Returns both with the loss that is other programs' beside a mechanism with a timer."""
    timed = (Pattern.REPLENISHMENTS, Pattern.CLOCKED)
    known = [view for view in (one_cpu, every) if view is not None]
    lost = [loop.lost for view in known for loop in view.loops if loop.pattern in timed]
    minor = _MINOR * max(lost, default=0.0)
    alone, together = (
        None if view is None else replace(view, minor=minor) for view in (one_cpu, every)
    )
    return alone, together


def may_be_cap(alone: View | None, every: View | None) -> bool:
    """Returns whether turns are on a grid, and only while all CPUs are busy.

    Virtual CPUs that share one of the host's do so, and a cap with gaps of a tick.
    """
    if alone is None or every is None or alone.lossy:
        return False
    return all(
        loop.replenishments is not None and loop.replenishments.regular >= _GRID_OF_TURNS
        for loop in every.lossy
    )


def lost_by_own_kernel(views: Sequence[View]) -> bool:
    """Returns whether the kernel itself accounts for what the loops lost."""
    return onset.is_by_own_kernel([timed.loop for view in views for timed in view.lossy])


def cycle_ns(view: View) -> float:
    """Returns the usual time between main gaps in nanoseconds; the window for fewer than two."""
    cycles = [
        float(b.start_ns - a.start_ns)
        for loop in view.window.loops
        for a, b in pairwise(replenishments.main_gaps(loop.gaps))
    ]
    return replenishments.median_by_time(np.array(cycles)) or float(view.window.window_ns)


def loops_of(view: View) -> list[Loop]:
    """Returns the loops of an observation without their patterns."""
    return [loop_timing.loop for loop_timing in view.loops]


def clock_read_slowdown(windows: Sequence[ObservationWindow], every: View | None) -> float | None:
    """Returns the time of a clock read with all CPUs busy, over the longest with one CPU busy.

    The longest of all windows that kept only one CPU busy: windows differ by themselves, with the
    clock rate and with what strangers do on the other thread of the core.
    """
    if every is None:
        return None
    alone: dict[int | None, float] = {}
    for window in of_kind(windows, "one", "several", "sleeping"):
        for loop in window.loops:
            if loop.look_cost_ns:
                alone[loop.cpu] = max(alone.get(loop.cpu, 0.0), loop.look_cost_ns)
    ratios = [
        loop_timing.loop.look_cost_ns / cost
        for loop_timing in every.loops
        if loop_timing.loop.look_cost_ns and (cost := alone.get(loop_timing.loop.cpu))
    ]
    return float(np.median(ratios)) if ratios else None


def is_stopped_often(view: View) -> bool:
    """Returns whether its loops gave up their CPU again and again."""
    gaps = [gap for loop in view.window.loops for gap in replenishments.long_gaps(loop.gaps)]
    stops = [gap.length_ns for gap in gaps if gap.cause == "stopped"]
    lost = sum(stops) / view.window.window_ns / len(view.loops)
    return len(stops) >= _LEAST_STOPS and lost >= _LEAST_STOPPED


def is_caused_by(view: View, cause: str) -> bool:
    """Returns whether most of the time in main gaps has this cause by the kernel's counters."""
    gaps = [gap for loop in view.window.loops for gap in replenishments.main_gaps(loop.gaps)]
    lost = sum(gap.length_ns for gap in gaps)
    own = sum(gap.length_ns for gap in gaps if gap.cause == cause)
    return own >= _HALF_OF_LOSS * lost > 0


def is_caused_by_programs(view: View) -> bool:
    """Returns whether other programs of the system used at least half of the lost time.

    Those that are counted are all of the system's own; a neighbour's and a hypervisor's are not.
    """
    used = sum(cpus for _, cpus in view.window.programs)
    preempted = is_caused_by(view, "preempted") or is_caused_by(view, "unexplained")
    return preempted and used >= _HALF_OF_LOSS * view.window.lost_cpus > 0


def obtained_in_periods_cpus(view: View) -> float:
    """Returns the CPUs that all loops had, over whole periods where those are known."""
    return sum(
        float(np.mean(values))
        if loop_timing.replenishments is not None
        and loop_timing in view.lossy
        and (values := shares.apart([loop_timing.loop], loop_timing.replenishments)).size
        else loop_timing.loop.share
        for loop_timing in view.loops
    )


def all_share_replenishments(view: View) -> bool:
    """Returns whether every loop lost the CPU, if only a little at the refills of the others."""
    candidates = [
        loop_timing.replenishments
        for loop_timing in view.lossy
        if loop_timing.replenishments is not None
    ]
    grid = max(candidates, key=lambda replenishments: replenishments.n, default=None)
    origin = grid.origins_ns[0] if grid is not None else None
    return all(
        loop_timing in view.lossy
        or (
            grid is not None
            and origin is not None
            and replenishments.ended_on(loop_timing.loop.gaps, grid, origin) >= _HALF_OF_LOSS
        )
        for loop_timing in view.loops
    )


def common_replenishments(view: View) -> Replenishments | None:
    """Returns the common period of all loops of a window."""
    common = replenishments.find([loop.gaps for loop in view.window.loops], view.window.window_ns)
    if common is not None:
        return common
    known = [loop_timing.replenishments for loop_timing in view.loops]
    grid = max(
        (candidate for candidate in known if candidate),
        key=lambda candidate: candidate.n,
        default=None,
    )
    if grid is None:
        return None
    origins = tuple(None if candidate is None else candidate.origins_ns[0] for candidate in known)
    return replace(grid, origins_ns=origins)
