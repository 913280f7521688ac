"""What one observation of a target shows, with the pattern of each of its loops: the rules of
`infer` ask this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from nephoscope.features.scheduler.inference import replenishments, shares, timing
from nephoscope.features.scheduler.inference.onset import Onset, Onsets
from nephoscope.features.scheduler.inference.replenishments import Replenishments
from nephoscope.features.scheduler.inference.timing import Pattern, Timing
from nephoscope.features.scheduler.inference.verdict import Look, Loop, of_kind

_HALF_OF_LOSS = 0.5
_LEAST_STOPS, _LEAST_STOPPED = 5, 0.005
"""Stops and the time in them from which programs are stopped and continued: a page that has to be
read from disk stops a loop, too, but not in every second."""
_GRID_OF_TURNS = 0.8
_MINOR = 0.25
"""Of what a mechanism took, so much may other programs take without being a second one."""


@dataclass(frozen=True, slots=True)
class View:
    """A look with the pattern of each of its loops.

    minor: a loss below it that follows no timer is another program's, beside a mechanism that does.
    """

    look: Look
    loops: tuple[Timing, ...]

    minor: float = 0.0

    @property
    def lossy(self) -> tuple[Timing, ...]:
        """The loops that lost more than a little, and by no rule more than `minor`."""
        return tuple(
            one
            for one in self.loops
            if one.pattern is not Pattern.NONE
            and (one.pattern in (Pattern.REPLENISHMENTS, Pattern.CLOCKED) or one.lost >= self.minor)
        )

    @property
    def share(self) -> float:
        """Mean share of its loops."""
        return float(np.mean([one.loop.share for one in self.loops]))

    def all_are(self, pattern: Pattern) -> bool:
        """Returns whether every loop that lost anything did so in this way, and one did."""
        return bool(self.lossy) and all(one.pattern is pattern for one in self.lossy)


def view_of_kind(
    looks: Sequence[Look],
    kind: str,
    losing: Sequence[Loop],
    grid: Replenishments | None,
    begun: Onsets,
) -> View | None:
    """Returns the look of a kind to go by: of the longest ones the one with the median share.

    losing: the loops that `grid` and `begun` were found in; a few short gaps of others would lie on
    any grid.
    """
    candidates = of_kind(looks, kind)
    if not candidates:
        return None
    longest_ns = max(look.window_ns for look in candidates)
    longest = [look for look in candidates if look.window_ns == longest_ns]
    longest.sort(key=lambda look: look.obtained_cpus)
    look = longest[(len(longest) - 1) // 2]
    starts = begun.starts if begun.onset is Onset.CLOCK else None
    loops = []
    for loop in look.loops:
        lost = any(loop is loser for loser in losing)
        timed = timing.of_loop(look, loop, grid if lost else None)
        loops.append(timing.clocked(timed, starts) if lost and starts is not None else timed)
    return View(look, tuple(loops))


def observations_differ(busy: Sequence[Look]) -> bool:
    """Returns whether observations of one kind show turns in one and a budget's grid in another."""
    patterns = [
        {timing.of_loop(look, loop).pattern for look in of_kind(busy, kind) for loop in look.loops}
        for kind in ("one", "all")
    ]
    return any({Pattern.TURNS, Pattern.REPLENISHMENTS} <= seen for seen in patterns)


def without_minor(one: View | None, every: View | None) -> tuple[View | None, View | None]:
    """Returns both with the loss that is other programs' beside a mechanism with a timer."""
    timed = (Pattern.REPLENISHMENTS, Pattern.CLOCKED)
    known = [view for view in (one, every) if view is not None]
    lost = [loop.lost for view in known for loop in view.loops if loop.pattern in timed]
    minor = _MINOR * max(lost, default=0.0)
    alone, together = (
        None if view is None else replace(view, minor=minor) for view in (one, every)
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


def is_by_own_kernel(views: Sequence[View]) -> bool:
    """Returns whether the kernel itself accounts for what the loops lost.

    Its budgets are used up at ticks; a hypervisor may have a timer that ends them exactly.
    """
    loops = [one.loop for view in views for one in view.lossy]
    known = [loop for loop in loops if loop.thread_cpu_ratio is not None]
    return bool(known) and all(
        (loop.thread_cpu_ratio or 0.0) <= loop.share + timing.LITTLE for loop in known
    )


def cycle_ns(view: View) -> float:
    """Returns the usual time between main gaps in nanoseconds; the window for fewer than two."""
    cycles = [
        float(b.start_ns - a.start_ns)
        for loop in view.look.loops
        for a, b in pairwise(replenishments.main_gaps(loop.gaps))
    ]
    return replenishments.median_by_time(np.array(cycles)) or float(view.look.window_ns)


def loops_of(view: View) -> list[Loop]:
    """Returns the loops of an observation without their patterns."""
    return [one.loop for one in view.loops]


def clock_read_slowdown(looks: Sequence[Look], every: View | None) -> float | None:
    """Returns the time of a clock read with all CPUs busy, over the longest with one CPU busy.

    The longest of all looks that kept only one CPU busy: looks differ by themselves, with the clock
    rate and with what strangers do on the other thread of the core.
    """
    if every is None:
        return None
    alone: dict[int | None, float] = {}
    for look in of_kind(looks, "one", "several", "sleeping"):
        for loop in look.loops:
            if loop.look_cost_ns:
                alone[loop.cpu] = max(alone.get(loop.cpu, 0.0), loop.look_cost_ns)
    ratios = [
        one.loop.look_cost_ns / cost
        for one in every.loops
        if one.loop.look_cost_ns and (cost := alone.get(one.loop.cpu))
    ]
    return float(np.median(ratios)) if ratios else None


def is_stopped_often(view: View) -> bool:
    """Returns whether its loops gave up their CPU again and again."""
    gaps = [gap for loop in view.look.loops for gap in replenishments.long_gaps(loop.gaps)]
    stops = [gap.length_ns for gap in gaps if gap.cause == "stopped"]
    lost = sum(stops) / view.look.window_ns / len(view.loops)
    return len(stops) >= _LEAST_STOPS and lost >= _LEAST_STOPPED


def is_caused_by(view: View, cause: str) -> bool:
    """Returns whether most of the time in main gaps has this cause by the kernel's counters."""
    gaps = [gap for loop in view.look.loops for gap in replenishments.main_gaps(loop.gaps)]
    lost = sum(gap.length_ns for gap in gaps)
    own = sum(gap.length_ns for gap in gaps if gap.cause == cause)
    return own >= _HALF_OF_LOSS * lost > 0


def is_caused_by_programs(view: View) -> bool:
    """Returns whether other programs of the system used at least half of the lost time.

    Those that are counted are all of the system's own; a neighbour's and a hypervisor's are not.
    """
    used = sum(cpus for _, cpus in view.look.programs)
    preempted = is_caused_by(view, "preempted") or is_caused_by(view, "unexplained")
    return preempted and used >= _HALF_OF_LOSS * view.look.lost_cpus > 0


def obtained_in_periods_cpus(view: View) -> float:
    """Returns the CPUs that all loops had, over whole periods where those are known."""
    return sum(
        float(np.mean(values))
        if one.replenishments is not None
        and one in view.lossy
        and (values := shares.apart([one.loop], one.replenishments)).size
        else one.loop.share
        for one in view.loops
    )


def all_share_replenishments(view: View) -> bool:
    """Returns whether every loop lost the CPU, if only a little at the refills of the others."""
    found = [one.replenishments for one in view.lossy if one.replenishments is not None]
    grid = max(found, key=lambda replenishments: replenishments.n, default=None)
    origin = grid.origins_ns[0] if grid is not None else None
    return all(
        one in view.lossy
        or (
            grid is not None
            and origin is not None
            and replenishments.ended_on(one.loop.gaps, grid, origin) >= _HALF_OF_LOSS
        )
        for one in view.loops
    )


def common_replenishments(view: View) -> Replenishments | None:
    """Returns the common period of all loops of a look."""
    found = replenishments.find([loop.gaps for loop in view.look.loops], view.look.window_ns)
    if found is not None:
        return found
    known = [one.replenishments for one in view.loops]
    grid = max((one for one in known if one), key=lambda one: one.n, default=None)
    if grid is None:
        return None
    origins = tuple(None if one is None else one.origins_ns[0] for one in known)
    return replace(grid, origins_ns=origins)
