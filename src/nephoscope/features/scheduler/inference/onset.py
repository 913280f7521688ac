"""What decides when a gap begins: the use of CPU time (a budget), or a clock (a periodic task)?

Both give the CPU back in a regular rhythm, and differ in what they can do:

* A budget is used up by the program itself. A kernel sees that at its timer ticks, so gaps start
  there, a tick earlier or later each time. In the period before a gap the program has always used
  about a whole slice: after a sleep, its gap comes later.
* A task that wakes by a timer and goes before the program takes the CPU at moments of its own.
  Gaps start as exactly as that timer, off the ticks, and however much the program slept.

Sources: Linux `scheduler/sched-bwc.rst`, `sched-deadline.rst`; sched(7), SCHED_FIFO.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import numpy as np

from nephoscope.features.scheduler.inference import replenishments, timing
from nephoscope.features.scheduler.inference.replenishments import EXACT_NS, Replenishments
from nephoscope.features.scheduler.inference.verdict import Gap, ObservationWindow, of_kind

_MOST = 0.7
"""Share of the lost time in gaps that start with a timer, where others disturb a few."""
_LEAST_STARTS = 5
_MORE = 0.1
"""Which of starts and ends is exact counts from here on."""
_SLEPT, _USED_LITTLE, _USED_ALL = 0.25, 0.7, 0.9
"""Of a slice: sleep that tells anything, use that exhausts no budget, use that may."""
_OFF_PERIOD = 0.1
_DIFFERENT, _FOR_CERTAIN = 0.3, 3
"""Of the loss, by which it differs with other CPUs busy; the gaps that this weighs as much as."""
_LATE_NS = 6e6
"""A tick and a part of quota: by so much a kernel exceeds a slice, to subtract it from the next."""
_ON_TICK_NS = 0.15e6


class Onset(StrEnum):
    """Rule that the start of a gap follows."""

    USE = "use"
    CLOCK = "clock"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Onsets:
    """The verdict with what carries it.

    starts: the grid on which gaps start, where there is one as exact as a timer. drifts: whether
    that grid moves against the kernel's ticks. slept: gaps after sleeps that came in spite of them,
    and that came later for them. ticks: common gaps of two programs that began off the ticks, and
    on them.
    """

    onset: Onset
    starts: Replenishments | None = None
    drifts: bool = False
    slept: tuple[int, int] = (0, 0)
    ticks: tuple[int, int] = (0, 0)


def find(
    windows: Sequence[ObservationWindow],
    busy: Sequence[ObservationWindow],
    ends: Replenishments | None,
) -> Onsets:
    """Returns what the gaps of the windows `busy` follow, which had no sleep.

    windows: all of the target; those with sleeps and with two programs on a CPU add evidence. ends:
    the grid on which gaps end, None where there is none.
    """
    loops = replenishments.losing(busy)
    window_ns = max((window.window_ns for window in busy), default=0)
    starts = replenishments.find([loop.gaps for loop in loops], window_ns, at_starts=True)
    if starts is not None and (starts.exact < _MOST or starts.n < _LEAST_STARTS):
        starts = None
    if starts is not None and ends is not None and ends.exact > starts.exact + _MORE:
        starts = None
    grid = starts or ends
    if grid is None:
        return Onsets(Onset.UNKNOWN)
    period_ns = grid.period_ns
    mains = [replenishments.main_gaps(loop.gaps) for loop in loops]
    runs_ns = [b.start_ns - a.end_ns for gaps in mains for a, b in pairwise(gaps)]
    run_ns = replenishments.median_by_time(np.array(runs_ns))
    gap_ns = replenishments.median_by_time(
        np.array([gap.length_ns for gaps in mains for gap in gaps])
    )
    slept = _after_sleeps(of_kind(windows, "sleeping"), period_ns, run_ns, gap_ns)
    tick_ns, ticks = _against_ticks(of_kind(windows, "several"), gap_ns)
    drifts = tick_ns is not None and abs(replenishments.to_nearest(period_ns, tick_ns)) > EXACT_NS
    clock, use = slept[0] + ticks[0] + int(drifts), slept[1] + ticks[1]
    if _depends_on_others(busy):
        use += _FOR_CERTAIN
    if starts is not None:
        clock += ends is None or ends.exact < starts.exact - 3 * _MORE
        onset = Onset.CLOCK if clock > use else Onset.USE if use > clock else Onset.UNKNOWN
    else:
        onset = Onset.UNKNOWN if slept[0] > max(1, slept[1]) else Onset.USE
    return Onsets(onset, starts, drifts, slept, ticks)


def _depends_on_others(busy: Sequence[ObservationWindow]) -> bool:
    """Returns whether a CPU gives a loop less, or more, while other CPUs are busy: no task on it
    knows."""
    shares: dict[str, dict[int, list[float]]] = {"one": {}, "all": {}}
    for window in busy:
        for loop in window.loops:
            if loop.cpu is not None:
                shares[window.kind].setdefault(loop.cpu, []).append(loop.share)
    return any(
        abs(np.mean(alone) - np.mean(shares["all"][cpu])) > _DIFFERENT * (1 - min(alone))
        and abs(np.mean(alone) - np.mean(shares["all"][cpu])) > timing.LITTLE
        for cpu, alone in shares["one"].items()
        if cpu in shares["all"]
    )


def _after_sleeps(
    windows: Sequence[ObservationWindow], period_ns: float, run_ns: float, gap_ns: float
) -> tuple[int, int]:
    """Gaps in a period with a sleep: how many came in spite of it, and how many came later."""
    clock = use = 0
    for window in windows:
        for loop in window.loops:
            gaps = [
                gap for gap in replenishments.long_gaps(loop.gaps) if gap.length_ns >= gap_ns / 2
            ]
            for before, gap in zip([None, *gaps], gaps, strict=False):
                since = gap.start_ns - period_ns
                if since < 0:
                    continue
                slept = _overlap(loop.sleeps, since, gap.start_ns)
                used = period_ns - slept - _overlap(loop.gaps, since, gap.start_ns)
                if slept < max(_SLEPT * run_ns, _LATE_NS):
                    continue
                off = 0.0
                if before is not None:
                    off = abs(
                        replenishments.to_nearest(float(gap.start_ns - before.start_ns), period_ns)
                    )
                if used < _USED_LITTLE * run_ns and used < run_ns - _LATE_NS:
                    clock += before is None or off <= 2 * EXACT_NS
                elif used >= _USED_ALL * run_ns:
                    use += before is not None and off > _OFF_PERIOD * period_ns
    return clock, use


def _overlap(gaps: Sequence[Gap], low_ns: float, high_ns: float) -> float:
    return sum(
        max(0.0, min(gap.end_ns, high_ns) - max(float(gap.start_ns), low_ns)) for gap in gaps
    )


def _against_ticks(
    windows: Sequence[ObservationWindow], gap_ns: float
) -> tuple[float | None, tuple[int, int]]:
    """The tick at which two programs take turns, and how many common gaps begin off it and on it.

    The one that runs when a common gap begins sees its start; the other waits already.
    """
    off = on = 0
    tick_ns = None
    for window in windows:
        if len(window.loops) < 2:
            continue
        turns = [
            float(gap.start_ns)
            for loop in window.loops
            for gap in replenishments.long_gaps(loop.gaps)
            if gap.length_ns < min(gap_ns / 2, 3 * timing.SLICE_NS)
        ]
        tick = timing.common_tick(np.array(turns))
        if tick is None:
            continue
        tick_ns, phase_ns = tick
        first, second = (
            [gap for gap in loop.gaps if gap.length_ns >= gap_ns / 2] for loop in window.loops[:2]
        )
        for gap in first:
            for second_gap in second:
                common = min(gap.end_ns, second_gap.end_ns) - max(gap.start_ns, second_gap.start_ns)
                if common < max(gap_ns / 2, 2 * tick_ns):
                    continue
                start = float(max(gap.start_ns, second_gap.start_ns))
                near = abs(replenishments.to_nearest(start - phase_ns, tick_ns)) <= _ON_TICK_NS
                on += near
                off += not near
    return tick_ns, (off, on)
