"""By which rule a loop loses the CPU: refills at regular moments, short turns, or no rule at all.

Four patterns are told apart, one loop at a time:

* *refills*: the CPU comes back on a grid (see `replenishments`). That is a budget.
* *turns*: the scheduler lets several programs take turns. A turn is one slice, a few milliseconds,
  and both its ends lie on timer ticks; so either the runs or the gaps are about one slice long.
* *clocked*: gaps start by a timer that is not this loop's budget (see `onset`).
* *irregular*: none of them.

A grid whose period is a whole number of ticks can be made by turns, too (one against three weights
is 4 ms in every 16). It counts as refills only where both runs and gaps are longer than a slice,
or where runs are one tick and two in turns.
"""

from __future__ import annotations

import math
from dataclasses import replace
from enum import StrEnum

import numpy as np

from nephoscope.core.records import dataclass
from nephoscope.features.scheduler.inference.replenishments import (
    Replenishments,
    find,
    long_gaps,
    median_by_time,
    replenishments_on_period,
    resultant,
    to_nearest,
)
from nephoscope.features.scheduler.inference.verdict import Loop, ObservationWindow
from nephoscope.stats.statistics.values import Array

SHORTEST_NS = 1e6
TICKS_NS = ((4e6, 10e6 / 3), (10e6,), (SHORTEST_NS,))
"""Timer ticks of kernels built for 250 and 300, 100, and 1000 Hz, in the order of belief."""
SLICE_NS = 4e6
"""A fair scheduler's slice: 2.8 to 4 ms on Linux; it ends at a tick."""

LITTLE = 0.05
"""A busy loop that lost less than this had the CPU for itself, but for interrupts and daemons."""

_LONG_NS = 20e6
"""No interrupt and no daemon takes the CPU for so long at a time."""

_COHERENT, _ALIGNED = 0.8, 0.6
"""Of starts, which every mechanism ties to ticks, and of ends, among which there may be others."""
_TOGETHER_NS = 0.15e6
"""Ticks and what follows from them are this close; a timer of its own may be anywhere."""
LEAST_TURNS, _MOST_ON_TICKS, _RANDOM = 5, 0.6, 0.01
_SWITCH_NS = 0.06e6
"""A switch of programs takes this long; a tick of 1 ms leaves no room for more."""
_REGULAR, _FILLED = 0.5, 0.45
_ALWAYS, _TWO_TICKS = 0.9, 1.5
_A_TURN = 1.3
_SHORT_CYCLE_NS = 20e6
"""Of two equal weights against their sum, a fair scheduler gives two slices in a row to each side:
8 ms and 8 ms. Budgets have longer periods."""


class Pattern(StrEnum):
    """Pattern in which a loop loses the CPU."""

    NONE = "none"
    REPLENISHMENTS = "refills"
    CLOCKED = "clocked"
    TURNS = "turns"
    IRREGULAR = "irregular"


@dataclass(frozen=True, slots=True)
class Timing:
    """The pattern of one loop.

    lost: share of the window. tick_ns: on which the gaps begin, None when they do not. aligned:
    whether they end on the same ticks. run_ns, gap_ns: medians between and of long gaps; None
    without. replenishments: the grid where there is one, also when the pattern is another.
    """

    loop: Loop
    pattern: Pattern
    lost: float
    tick_ns: float | None = None
    aligned: bool = False
    run_ns: float | None = None
    gap_ns: float | None = None
    replenishments: Replenishments | None = None


def of_loop(window: ObservationWindow, loop: Loop, common: Replenishments | None = None) -> Timing:
    """The pattern of one loop of a window; `common`: the grid of all loops of the target."""
    lost = 1 - loop.share
    gaps = long_gaps(loop.gaps)
    replenishments = None if common is None else replenishments_on_period(loop.gaps, common)
    if replenishments is None or not is_periodic(replenishments):
        replenishments = find([loop.gaps], window.window_ns) or replenishments
    lengths = np.array([gap.length_ns for gap in gaps])
    is_little = lost < (LITTLE if median_by_time(lengths) < _LONG_NS else LITTLE / 2)
    if len(gaps) < 3 and (replenishments is None or not is_periodic(replenishments)):
        pattern = Pattern.NONE if is_little else Pattern.IRREGULAR
        return Timing(loop, pattern, lost)
    starts = np.array([float(gap.start_ns) for gap in gaps])
    ends = starts + lengths
    tick, aligned = _ticks(starts, ends)
    runs = starts[1:] - ends[:-1]
    run, gap = median_by_time(runs[runs > 0]), median_by_time(lengths)
    short = _short(min(run, gap), tick, replenishments)
    if replenishments is not None and short and _overruns(starts, ends, replenishments):
        short = False
    if replenishments is not None and is_periodic(replenishments) and not (aligned and short):
        pattern = Pattern.REPLENISHMENTS
    elif is_little:
        pattern = Pattern.NONE
    elif short and (aligned or tick is None):
        pattern = Pattern.TURNS
    else:
        pattern = Pattern.IRREGULAR
    return Timing(loop, pattern, lost, tick, aligned, run, gap, replenishments)


def clocked(timing: Timing, starts: Replenishments) -> Timing:
    """The pattern of a loop whose main gaps start on a grid that a timer makes; else unchanged."""
    grid = replenishments_on_period(timing.loop.gaps, starts, at_starts=True)
    if grid is None or grid.regular < _REGULAR or timing.lost < LITTLE / 2:
        return timing
    return replace(timing, pattern=Pattern.CLOCKED, replenishments=grid)


def is_periodic(grid: Replenishments) -> bool:
    """Returns whether nearly all gaps end on the grid, and nearly every period has such an end."""
    return grid.regular >= _REGULAR and grid.filled >= _FILLED


def _short(length: float, tick: float | None, replenishments: Replenishments | None) -> bool:
    """Returns whether runs or gaps are a turn long: one slice, two where the whole cycle is
    short."""
    turn_ns = _A_TURN * max(SLICE_NS, tick or 0.0)
    quick = replenishments is not None and replenishments.period_ns < _SHORT_CYCLE_NS
    return length <= (2 * turn_ns if quick else turn_ns)


def _overruns(starts: Array, ends: Array, grid: Replenishments) -> bool:
    """Returns whether a grid without fail has runs of one tick and of two: a budget between them.

    A fair scheduler gives a program one slice at a time, where it has less than half of the CPU.
    """
    runs = starts[1:] - ends[:-1]
    less = float(runs.sum()) < 0.5 * float(ends[-1] - ends[0])
    if not less or grid.regular < _ALWAYS or grid.filled < _ALWAYS:
        return False
    usual, most = (float(quantile) for quantile in np.quantile(runs, (0.5, 0.9)))
    return most >= _TWO_TICKS * usual


def _ticks(starts: Array, ends: Array) -> tuple[float | None, bool]:
    """The tick on which the gaps begin, and whether they end on it as well.

    Regular gaps begin on other ticks, too: every 12 ms is every 4 ms and every 1. The first ticks
    that hold are taken for the true ones, unless both ends lie on the shortest to its precision.
    """
    for ticks in TICKS_NS:
        tick_ns = None
        for tick in ticks:
            if abs(_resultant(starts, tick)) < _COHERENT:
                continue
            if _apart(starts, ends, tick) <= _TOGETHER_NS:
                return tick, True
            tick_ns = tick_ns or tick
        if tick_ns is not None:
            regular = abs(_resultant(ends, tick_ns)) >= _COHERENT
            if regular and _apart(starts, ends, SHORTEST_NS) <= _SWITCH_NS:
                return SHORTEST_NS, True
            return tick_ns, False
    return None, False


def common_tick(times: Array) -> tuple[float, float] | None:
    """The timer tick on which most of these events lie, and a moment of it; None without one.

    Events that lie anywhere would do so with a chance below 1 %.
    """
    from scipy.special import bdtrc  # takes a while

    if times.size < LEAST_TURNS:
        return None
    for tick in (tick for ticks in TICKS_NS for tick in ticks):
        off = to_nearest(times[:, None] - times[None, :], tick)
        near = np.abs(off) <= _TOGETHER_NS
        most = int(np.argmax(near.sum(axis=1)))
        on = int(near[most].sum())
        chance = float(bdtrc(on - 2, times.size - 1, 2 * _TOGETHER_NS / tick)) * times.size
        if on >= _MOST_ON_TICKS * times.size and chance < _RANDOM:
            phase = times[most] - float(np.median(off[most][near[most]]))
            return tick, float(phase) % tick
    return None


def _apart(starts: Array, ends: Array, tick: float) -> float:
    """Returns how far the ends lie from the ticks of the starts; infinite where they lie
    anywhere."""
    began, ended = _resultant(starts, tick), _resultant(ends, tick)
    if abs(ended) < _ALIGNED:
        return math.inf
    return float(abs(np.angle(ended / began))) / (2 * math.pi) * tick


def _resultant(times: Array, tick: float) -> complex:
    return complex(resultant(times, np.ones(times.size), np.array([tick]))[0])
