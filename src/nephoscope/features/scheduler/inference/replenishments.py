"""Is the CPU given back at regular moments? The period of refills, from the ends of gaps.

Every mechanism with a budget (a reservation, a quota, a cap) takes the CPU away when the budget is
used up, which the kernel sees at a timer tick, and gives it back when the period is over, which a
timer of its own tells exactly. So the *ends* of gaps lie on a grid of the period, while their
starts lie on ticks. The period is found in a periodogram of the ends, weighted by length, and then
fitted by regression of the ends on their numbers; one common period, a phase of its own for each
loop. Sources: Linux `scheduler/sched-bwc.rst`, `sched-deadline.rst`; the weighted periodogram of
events is the Rayleigh statistic (Mardia and Jupp, Directional Statistics, 2000, ch. 5).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nephoscope.core.records import dataclass
from nephoscope.features.scheduler.inference.verdict import Fit, Gap, Loop, ObservationWindow
from nephoscope.stats.statistics.means import t_quantile
from nephoscope.stats.statistics.values import Array

Flags = NDArray[np.bool_]
_Times = TypeVar("_Times", float, Array)

LONG_NS = 1e6
"""Gaps from here on are the scheduler's; shorter ones are interrupts and the like."""

SHORTEST_NS, LEAST_PERIODS = 5e6, 2
"""Periods are looked for from the first to a window over the second."""

_COHERENT = 0.5
"""Mean resultant length of ends on a grid: 1 is exact, and 0.8 leaves room for other gaps."""
_AS_GOOD = 0.9
"""Any period's halves and thirds fit as well as it: the longest within this of the best is it."""
_FINE = 8
"""Frequencies for each one that a window of this length can tell apart, at least."""
_BIN_NS, _MOST_BINS = 1e5, 2**21
"""Moments are counted in bins for the transform: a fiftieth of the shortest period is exact enough
for a first value, and for an hour a tenth."""
_LEAST_ENDS = 5
_MAIN = 0.25
"""Gaps shorter than this part of the usual one are other programs'; they tell nothing of a grid."""
_LOSING = 0.25
"""Of what the loop with the most loss lost."""
_RANDOM, _PERIODS_TRIED = 0.01, 1000.0
"""Chance below which events that no clock makes lie on some grid, and how many grids are tried."""
EXACT_NS = 0.25e6
"""A timer is this exact, with a program that has to be stopped first; a tick is coarser."""
_TICK_NS = 2.5e6
"""Half of a usual tick, and a bit."""


@dataclass(frozen=True, slots=True)
class Replenishments:
    """A grid of moments at which the CPU is given back.

    low_ns, high_ns: 95 % interval of the period. origins_ns: a moment of each loop's grid; None
    for a loop without one. n: ends that the regression used. regular: share of the time in long
    gaps that belongs to gaps that end on the grid. filled: share of the periods with such an end.
    exact: share of that time in gaps that end on it as exactly as a timer. to_a_tick: as a timer
    whose moment an idle CPU notices at its next tick.
    """

    period_ns: float
    low_ns: float
    high_ns: float
    origins_ns: tuple[float | None, ...]
    n: int
    regular: float
    filled: float
    exact: float = 0.0
    to_a_tick: float = 0.0

    @property
    def apart_ns(self) -> float:
        """Returns how far apart the loops are refilled, at most; 0 for one loop."""
        known = [origin for origin in self.origins_ns if origin is not None]
        offsets = [to_nearest(origin - known[0], self.period_ns) for origin in known]
        return max((abs(offset) for offset in offsets), default=0.0)


def long_gaps(gaps: Sequence[Gap]) -> list[Gap]:
    """Those that a scheduler makes."""
    return [gap for gap in gaps if gap.length_ns >= LONG_NS]


def main_gaps(gaps: Sequence[Gap]) -> list[Gap]:
    """The long gaps without those that are far shorter than the usual one."""
    longs = long_gaps(gaps)
    if not longs:
        return []
    least = _MAIN * median_by_time(np.array([gap.length_ns for gap in longs]))
    return [gap for gap in longs if gap.length_ns >= least]


def median_by_time(lengths: Array) -> float:
    """The length in which, or in longer ones, half of the time is; 0 of none."""
    if not lengths.size:
        return 0.0
    ordered = np.sort(lengths)
    return float(ordered[int(np.searchsorted(np.cumsum(ordered), ordered.sum() / 2))])


def resultant(times: Array, weights: Array, period_ns: Array) -> Array:
    """Weighted mean resultant of times on each of these periods, shape of period_ns, complex."""
    turns = np.exp(2j * math.pi * times[:, None] / np.atleast_1d(period_ns)[None, :])
    vector: Array = weights @ turns / weights.sum()
    return vector


def find(
    loops: Sequence[Sequence[Gap]], window_ns: float, *, at_starts: bool = False
) -> Replenishments | None:
    """The grid on which the main gaps of these loops end; None when there is none.

    loops: the gaps of each loop, of one window or of several. window_ns: how long each looked.
    at_starts: the grid on which they start instead.
    """
    mains = [main_gaps(gaps) for gaps in loops]
    if sum(map(len, mains)) < _LEAST_ENDS:
        return None
    times = [
        np.array([float(gap.start_ns) if at_starts else gap.end_ns for gap in gaps])
        for gaps in mains
    ]
    weights = [np.array([gap.length_ns for gap in gaps]) for gaps in mains]
    period = _periodogram(times, weights, window_ns)
    return None if period is None else _fitted(times, weights, period)


def losing(windows: Sequence[ObservationWindow]) -> list[Loop]:
    """The loops that lost the most; others show what other programs did rather than a grid."""
    loops = [loop for window in windows for loop in window.loops]
    most = max((1 - loop.share for loop in loops), default=0.0)
    return [loop for loop in loops if 1 - loop.share >= _LOSING * most]


def replenishments_on_period(
    gaps: Sequence[Gap], grid: Replenishments, *, at_starts: bool = False
) -> Replenishments | None:
    """Returns how one loop's main gaps lie on a known period; None for fewer than two that do."""
    mains = main_gaps(gaps)
    ends = np.array([float(gap.start_ns) if at_starts else gap.end_ns for gap in mains])
    lengths = np.array([gap.length_ns for gap in mains])
    period = grid.period_ns
    if ends.size < 2:
        return None
    # The phase that takes in the most time: ends that others delay do not move it.
    off = to_nearest(ends[:, None] - ends[None, :], period)
    origin = float(ends[int(np.argmax(lengths @ (np.abs(off) <= _near(period))))])
    numbers, masks = _numbered([ends], [origin], period, _near(period))
    on = masks[0]
    if int(on.sum()) < 2:
        return None
    filled = np.unique(numbers[0][on]).size / (int(np.ptp(numbers[0][on])) + 1)
    total = float(lengths.sum())
    return replace(
        grid,
        origins_ns=(origin,),
        n=int(on.sum()),
        regular=float(lengths[on].sum()) / total,
        filled=float(filled),
        exact=_exact_time(ends - origin - numbers[0] * period, lengths) / total,
        to_a_tick=_exact_time(ends - origin - numbers[0] * period, lengths, _TICK_NS) / total,
    )


def ended_on(gaps: Sequence[Gap], replenishments: Replenishments, origin_ns: float) -> float:
    """Share of the time in a loop's long gaps that ends on this grid; 0 for fewer than two ends."""
    longs = long_gaps(gaps)
    lengths = np.array([gap.length_ns for gap in longs])
    ends = np.array([gap.end_ns for gap in longs])
    period = replenishments.period_ns
    on = np.abs(to_nearest(ends - origin_ns, period)) <= _near(period)
    return float(lengths[on].sum() / lengths.sum()) if on.sum() > 1 else 0.0


def _periodogram(ends: Sequence[Array], weights: Sequence[Array], window_ns: float) -> float | None:
    """The longest period whose coherence is about the best; None when none is coherent."""
    bin_ns = max(_BIN_NS, window_ns / _MOST_BINS)
    size = 1 << math.ceil(math.log2(_FINE * window_ns / bin_ns))
    per_hertz = size * bin_ns
    low, high = math.ceil(per_hertz * LEAST_PERIODS / window_ns), math.ceil(per_hertz / SHORTEST_NS)
    if low >= high:
        return None
    frequencies = np.arange(low, high) / per_hertz
    total = sum(float(weight.sum()) for weight in weights)
    power = np.zeros(frequencies.size)
    for times, lengths in zip(ends, weights, strict=True):
        if times.size:
            bins = ((times - times.min()) / bin_ns).astype(np.int64) % size
            power += np.abs(np.fft.rfft(np.bincount(bins, lengths, size)))[low:high] / total
    best = float(power.max())
    if best < _COHERENT:
        return None
    at = int(np.argmax(power >= _AS_GOOD * best))
    while at + 1 < power.size and power[at + 1] > power[at]:
        at += 1
    return float(1 / frequencies[at])


def _fitted(
    ends: Sequence[Array], weights: Sequence[Array], period: float
) -> Replenishments | None:
    """Regression of the ends on their numbers, ends far from the grid left out."""
    origins = [_phase(times, lengths, period) for times, lengths in zip(ends, weights, strict=True)]
    spread = 0.25 * period
    half = residual = math.inf
    for _ in range(6):
        numbers, masks = _numbered(ends, origins, period, spread)
        fit = _regression(ends, numbers, masks)
        if fit is None:
            return None
        period, origins, residual, half = fit
        spread = max(_near(period), min(spread / 2, 4 * residual))
    numbers, masks = _numbered(ends, origins, period, spread)
    n = int(sum(int(mask.sum()) for mask in masks))
    if n < _LEAST_ENDS:
        return None
    loops = sum(bool(keep.any()) for keep in masks)
    # Ends that lie anywhere come as near to a grid by chance, each beyond those that set it.
    if (4 * max(residual, 1e-4 * period) / period) ** (n - loops - 1) * _PERIODS_TRIED > _RANDOM:
        return None
    lost = sum(float(weight.sum()) for weight in weights)
    exact, to_a_tick = (
        sum(
            _exact_time(times - (origin or 0.0) - number * period, lengths, within_ns)
            for times, lengths, origin, number in zip(ends, weights, origins, numbers, strict=True)
            if origin is not None
        )
        for within_ns in (EXACT_NS, _TICK_NS)
    )
    on = sum(float(weight[keep].sum()) for weight, keep in zip(weights, masks, strict=True))
    filled = [
        np.unique(number[keep]).size / (int(np.ptp(number[keep])) + 1)
        for number, keep in zip(numbers, masks, strict=True)
        if keep.any()
    ]
    return Replenishments(
        period,
        period - half,
        period + half,
        tuple(origins),
        n,
        on / lost,
        float(np.mean(filled)),
        exact / lost,
        to_a_tick / lost,
    )


def _exact_time(off: Array, lengths: Array, within_ns: float = EXACT_NS) -> float:
    """Time in the gaps that lie on a grid to this half-width, the grid moved to suit the most."""
    within = np.abs(off[:, None] - off[None, :]) <= within_ns
    return float((within @ lengths).max())


def _near(period: float) -> float:
    """Returns how far from the grid an end may lie: some kernels wake a CPU that idled at its next
    tick."""
    return max(0.02 * period, min(0.12 * period, 2.5e6))


def _phase(times: Array, weights: Array, period: float) -> float | None:
    """A moment of the grid: the first end, moved to the mean phase of all."""
    if not times.size:
        return None
    mean = float(np.angle(resultant(times, weights, np.array([period]))[0])) / (2 * math.pi)
    return float(times[0]) + to_nearest(mean * period - float(times[0]), period)


def to_nearest(offset: _Times, period: float) -> _Times:
    """The offset to the nearest point of a grid, from -period/2 to period/2."""
    return (offset + period / 2) % period - period / 2


def _numbered(
    ends: Sequence[Array], origins: Sequence[float | None], period: float, spread: float
) -> tuple[list[Array], list[Flags]]:
    """The number of each end's period, and whether it lies on the grid."""
    numbers: list[Array] = []
    flags: list[Flags] = []
    for times, origin in zip(ends, origins, strict=True):
        number = np.round((times - (origin or 0.0)) / period)
        on = np.abs(times - (origin or 0.0) - number * period) <= spread
        numbers.append(number)
        flags.append(on & (origin is not None))
    return numbers, flags


def _regression(
    ends: Sequence[Array], numbers: Sequence[Array], flags: Sequence[Flags]
) -> tuple[float, list[float | None], float, float] | None:
    """Common slope, an origin for each loop, residual deviation, half-width of the slope."""
    top = bottom = 0.0
    centres: list[tuple[float, float] | None] = []
    n = 0
    for times, number, keep in zip(ends, numbers, flags, strict=True):
        if not keep.any():
            centres.append(None)
            continue
        y, x = times[keep], number[keep]
        centre = (float(y.mean()), float(x.mean()))
        centres.append(centre)
        top += float(((x - centre[1]) * (y - centre[0])).sum())
        bottom += float(((x - centre[1]) ** 2).sum())
        n += int(keep.sum())
    loops = sum(centre is not None for centre in centres)
    if bottom <= 0 or top <= 0 or n <= loops + 1:
        return None
    slope = top / bottom
    origins = [None if centre is None else centre[0] - slope * centre[1] for centre in centres]
    squares = 0.0
    for times, number, keep, origin in zip(ends, numbers, flags, origins, strict=True):
        if origin is not None:
            squares += float(((times[keep] - origin - slope * number[keep]) ** 2).sum())
    residual = math.sqrt(squares / (n - loops - 1))
    half = t_quantile(n - loops - 1, 0.95) * residual / math.sqrt(bottom)
    return slope, origins, residual, half


# After a sleep: does the budget come back at fixed moments, or does its period begin anew?
#
# A quota is refilled by a timer that runs on whatever the program does: the grid of refills goes
# through the sleeps. A reservation begins a new period when its thread wakes up: each stretch
# between two sleeps has a grid that begins at its wake-up. Sources: `scheduler/sched-bwc.rst`;
# `sched-deadline.rst` (the wake-up rule of the constant bandwidth server); Xen's SEDF does the same
# (a domain that blocked for longer than its deadline gets a new one).

_CLEAR = 0.25
"""How much more coherent one grid has to be than the other."""
_LEAST = 6


class Replenished(StrEnum):
    """Rule by which a budget is refilled."""

    FIXED = "fixed"
    ON_WAKING = "on waking"


def replenished(window: ObservationWindow, fit: Fit) -> Replenished | None:
    """Returns which of both the gaps of a window with sleeps follow; None when they do not tell."""
    if fit.period_ns is None:
        return None
    loop = window.loops[0]
    gaps = long_gaps(loop.gaps)
    wakes = np.array([gap.end_ns for gap in loop.sleeps])
    ends = np.array([gap.end_ns for gap in gaps])
    if ends.size < _LEAST or wakes.size < 2:
        return None
    lengths = np.array([gap.length_ns for gap in gaps])
    before = np.searchsorted(wakes, ends) - 1
    after = before >= 0
    if int(after.sum()) < _LEAST:
        return None
    period = np.array([fit.period_ns.value])
    since = ends[after] - wakes[before[after]]
    fixed = float(abs(resultant(ends[after], lengths[after], period)[0]))
    anew = float(abs(resultant(since, lengths[after], period)[0]))
    if fixed >= anew + _CLEAR:
        return Replenished.FIXED
    if anew >= fixed + _CLEAR:
        return Replenished.ON_WAKING
    return None
