"""What decides when a gap begins: the use of CPU time (a budget), or a clock (a periodic task)?

Both give the CPU back in a regular rhythm, and differ in what they can do:

* A budget is used up by the program itself. A kernel sees that at its timer ticks, so gaps start
  there, a tick earlier or later each time, while a timer ends them exactly. After a sleep of the
  program its gap comes later, and the program has the CPU as soon as it wakes.
* A task that wakes by a timer and goes before the program takes the CPU at moments of its own.
  Gaps start as exactly as that timer, off the ticks, and however much the program slept. Where the
  task has a budget itself, they end at ticks.
* Programs that take turns by weight may do so in an exact rhythm, too; both ends lie on ticks, and
  a sleep of the program begins the rhythm anew.

Each observation is more probable under one of them; the logarithms of these ratios are summed.

Sources: Linux `scheduler/sched-bwc.rst`, `sched-deadline.rst`; sched(7), SCHED_FIFO.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from enum import StrEnum

import numpy as np

from nephoscope.core.records import dataclass
from nephoscope.features.scheduler.inference import after_sleeps, replenishments, timing
from nephoscope.features.scheduler.inference.after_sleeps import AfterSleeps
from nephoscope.features.scheduler.inference.replenishments import Replenishments
from nephoscope.features.scheduler.inference.verdict import Gap, Loop, ObservationWindow, of_kind
from nephoscope.stats.statistics.values import Array

_MOST = 0.7
"""Share of the lost time in gaps that start with a timer, where others disturb a few."""
_LEAST_STARTS = 5
_MORE = 0.1
"""Which of starts and ends is exact counts from here on."""
_MUCH_MORE, _TIMES = 0.15, 3.0
"""By so much, and so many times, more gaps end inexactly than start so, if a timer starts them and
a tick ends them; strangers disturb both."""
_ON_TICK_NS = 0.08e6
_EARLY_NS, _SWITCH_NS = 0.02e6, 0.15e6
"""When the next program goes on after the one before has lost the CPU, as the clock tells."""
_LEAST_TOGETHER, _WAKING_NS = 3, 2.5e6
"""Gaps that end at once on two CPUs; some kernels wake a CPU that idled at its next tick."""
_TICK_NS = 4e6
"""Of most kernels; a coarser one makes more coincidences, a finer one fewer."""
_SHORTEST_TASK_NS = 14e6
"""Rhythms of turns are this fast where two programs have equal weights."""

_NEARLY_ALL, _EXACT_AT_TICKS = 0.9, 2.0
"""A budget is used up at the same one of its ticks in every period where both are tuned to it, or
in one of eight cases: logarithm of that."""
_CERTAIN = 3.0
"""Logarithm of 20: evidence that decides."""
_WAITS = 0.3
"""Chance that a loop waits after a sleep, among programs that take turns."""
_ODD = 0.05
"""Chance of what should not happen, by strangers on the machine."""


class Onset(StrEnum):
    """Rule that the start of a gap follows."""

    USE = "use"
    CLOCK = "clock"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Onsets:
    """The verdict with what carries it.

    starts: the grid on which gaps start, where there is one as exact as a timer. ticks: common gaps
    of two programs that began off the ticks at which they take turns, and on them. for_clock: the
    sum of log-likelihood ratios of a timer over a budget. against_turns: over turns by weight.
    """

    onset: Onset
    starts: Replenishments | None = None
    slept: AfterSleeps = field(default_factory=AfterSleeps)
    ticks: tuple[int, int] = (0, 0)
    for_clock: float = 0.0
    against_turns: float = 0.0

    @property
    def are_turns_excluded(self) -> bool | None:
        """Returns whether no programs that take turns do this; None where nothing decides."""
        if self.starts is None or self.starts.period_ns < _SHORTEST_TASK_NS:
            return False
        if abs(self.against_turns) < _CERTAIN:
            return None
        return self.against_turns > 0


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
    if starts is None:
        return Onsets(
            Onset.USE if ends is not None and _is_refilled(loops, ends) else Onset.UNKNOWN
        )
    return _weighed(windows, busy, starts, ends)


def _weighed(
    windows: Sequence[ObservationWindow],
    busy: Sequence[ObservationWindow],
    starts: Replenishments,
    ends: Replenishments | None,
) -> Onsets:
    """Returns what decides where gaps start as exactly as a timer."""
    loops = replenishments.losing(busy)
    lengths_ns = np.array(
        [gap.length_ns for loop in loops for gap in replenishments.main_gaps(loop.gaps)]
    )
    slept = after_sleeps.observe(of_kind(windows, "sleeping"), starts.period_ns, lengths_ns)
    gap_ns = replenishments.median_by_time(lengths_ns)
    tick_ns, ticks = _against_ticks(of_kind(windows, "several"), gap_ns)
    inexact_ends = 1 - (0.0 if ends is None else ends.exact)
    is_mirrored = inexact_ends > _MUCH_MORE + _TIMES * (1 - starts.exact)
    exactness = _CERTAIN + 1 if is_mirrored else 0.0
    against_turns = exactness + _against_turns(slept, starts.period_ns)
    for_clock = exactness + _of_sleeps(slept, starts.period_ns) - _of_dependence(busy)
    if is_by_own_kernel(loops):
        # The ticks of this kernel say nothing about what a hypervisor does.
        off_ticks = _of_ticks(ticks, tick_ns, starts)
        against_turns += off_ticks
        for_clock += off_ticks + _EXACT_AT_TICKS * (starts.exact >= _NEARLY_ALL)
        if ends is not None:
            for_clock += _of_periods(starts, ends, tick_ns or _TICK_NS)
    onset = Onset.UNKNOWN
    if abs(for_clock) >= _CERTAIN:
        onset = Onset.CLOCK if for_clock > 0 else Onset.USE
    return Onsets(onset, starts, slept, ticks, for_clock, against_turns)


def _is_refilled(loops: Sequence[Loop], ends: Replenishments) -> bool:
    """Returns whether a timer ends the gaps: exactly, or, where an idle CPU notices it at its next
    tick only, to a tick, in gaps that begin at ticks."""
    if ends.exact >= _MOST:
        return True
    starts = [
        np.array([float(gap.start_ns) for gap in replenishments.main_gaps(loop.gaps)])
        for loop in loops
    ]
    known = [timing.common_tick(times) for times in starts if times.size >= timing.LEAST_TURNS]
    return ends.to_a_tick >= _MOST and (not known or any(tick is not None for tick in known))


def is_by_own_kernel(loops: Sequence[Loop]) -> bool:
    """Returns whether the kernel itself accounts for what the loops lost.

    Its budgets are used up at ticks; a hypervisor may have a timer that ends them exactly.
    """
    known = [loop for loop in loops if loop.thread_cpu_ratio is not None]
    return bool(known) and all(
        (loop.thread_cpu_ratio or 0.0) <= loop.share + timing.LITTLE for loop in known
    )


def _coincidence(period_ns: float) -> float:
    """Chance that a gap which starts at some tick starts at a given moment of the period."""
    return min(0.5, max(_ODD, _TICK_NS / period_ns))


def _of_sleeps(slept: AfterSleeps, period_ns: float) -> float:
    """Log-likelihood ratio of a timer over a budget, from what followed sleeps."""
    by_chance = _coincidence(period_ns)
    ratio = slept.on_time * math.log((1 - _ODD) / by_chance)
    ratio += slept.delayed * math.log(_ODD / (1 - by_chance))
    # A budget has time for a loop that wakes.
    ratio += (slept.late - slept.at_once) * math.log((1 - _ODD) / _ODD)
    if not slept.seen:
        # A budget that is never used up makes no gaps; a timer goes on.
        ratio += math.log(max(_ODD, slept.unseen_ratio))
    return ratio


def _against_turns(slept: AfterSleeps, period_ns: float) -> float:
    """Log-likelihood ratio of a timer over turns, from what followed sleeps."""
    by_chance = _coincidence(period_ns)
    ratio = slept.continued * math.log((1 - _ODD) / by_chance)
    ratio += slept.moved * math.log(_ODD / (1 - by_chance))
    # Whoever wakes among equals mostly goes first, and waits for a turn of others at the most.
    return ratio + slept.late * math.log(1 / _WAITS) - slept.at_once * math.log((1 - _ODD) / _ODD)


def _of_ticks(ticks: tuple[int, int], tick_ns: float | None, starts: Replenishments) -> float:
    """Log-likelihood ratio of a timer over a budget, from where the gaps began among ticks."""
    if tick_ns is None:
        return 0.0
    period_ns = starts.period_ns
    drift = abs(replenishments.to_nearest(period_ns, tick_ns))
    if drift * starts.n > tick_ns and drift > starts.high_ns - period_ns:
        # Starts that lie on ticks could not lie on this grid, too.
        return _CERTAIN + 1
    off, on = ticks
    if off + on < 2:
        return 0.0
    by_chance = 2 * _ON_TICK_NS / tick_ns
    return math.log((1 - by_chance) / _ODD if off > on else by_chance)


def _of_periods(starts: Replenishments, ends: Replenishments, tick_ns: float) -> float:
    """Log-likelihood ratio of a timer over a budget, where starts and ends have different periods.

    In a few periods whole ticks come as regularly as a timer, but not at the timer's period.
    """
    if starts.low_ns <= ends.high_ns and ends.low_ns <= starts.high_ns:
        return 0.0
    are_ticks = [
        abs(replenishments.to_nearest(grid.period_ns, tick_ns)) <= _ON_TICK_NS
        for grid in (starts, ends)
    ]
    if are_ticks[0] == are_ticks[1]:
        return 0.0
    return -(_CERTAIN + 1) if are_ticks[0] else _CERTAIN + 1


def _of_dependence(busy: Sequence[ObservationWindow]) -> float:
    """Log-likelihood ratio of a budget over timers, from how CPUs depend on each other.

    A budget of all CPUs gives two loops together what it gives one, and where it leaves one alone
    undisturbed it stops all at once. Tasks know nothing of other CPUs.
    """
    alone = [window.obtained_cpus for window in of_kind(busy, "one")]
    every = [window for window in of_kind(busy, "all") if len(window.loops) > 1]
    if not alone or not every:
        return 0.0
    least = min(alone)
    window = min(every, key=lambda window: window.obtained_cpus)
    if least < 1 - timing.LITTLE:
        is_shared = window.obtained_cpus <= least * (1 + 0.25 * (len(window.loops) - 1))
    else:
        is_shared = _are_stopped_at_once(window)
    return 2 * _CERTAIN if is_shared else 0.0


def _are_stopped_at_once(window: ObservationWindow) -> bool:
    """Returns whether most gaps of the loop with the least loss end with gaps of the one with the
    most: both wait for one refill."""
    loops = sorted(window.loops, key=lambda loop: -loop.share)
    least, most = (replenishments.main_gaps(loop.gaps) for loop in (loops[0], loops[-1]))
    if len(least) < _LEAST_TOGETHER:
        return False
    ends = np.array([gap.end_ns for gap in most])
    together = [bool((np.abs(ends - gap.end_ns) <= _WAKING_NS).any()) for gap in least]
    return float(np.mean(together)) > _MOST


def _hand_overs(first: Sequence[Gap], second: Sequence[Gap]) -> Array:
    """Moments at which one program lost the CPU to the other: the scheduler did that, at a tick."""
    starts = np.array([float(gap.start_ns) for gaps in (first, second) for gap in gaps])
    ends = np.array([gap.end_ns for gaps in (second, first) for gap in gaps])
    if not starts.size:
        return starts
    since = ends[None, :] - starts[:, None]
    moments: Array = starts[((since >= -_EARLY_NS) & (since <= _SWITCH_NS)).any(axis=1)]
    return moments


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
        pair = [replenishments.long_gaps(loop.gaps) for loop in window.loops[:2]]
        tick = timing.common_tick(_hand_overs(*pair))
        if tick is None:
            continue
        tick_ns, phase_ns = tick
        first, second = ([gap for gap in gaps if gap.length_ns >= gap_ns / 2] for gaps in pair)
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
