"""Pauses of a loop under reservation, cap or quota: which are the setting's, and what else took.

A pause of the setting begins at a tick, or where the kernel accounted between two of them, and ends
where a period begins. Others are interrupts, other programs, the machine below.
"""

from __future__ import annotations

import cmath
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from nephoscope.core.model import Sample

Pause = tuple[float, float]
"""Begin and length, in nanoseconds."""

WAKE_NS = 50_000
"""From a timer to the loop that it lets run: an interrupt, a wake-up out of idle, a switch. It only
matters where a period begins within it of a tick."""


def pauses(samples: Iterable[Sample], least_ns: float) -> dict[tuple[Any, int], list[Pause]]:
    """The pauses of each loop from `least_ns` on, in order."""
    found: dict[tuple[Any, int], list[Pause]] = {}
    for one in samples:
        if one.metric == "gap_event_ns" and one.value is not None and one.value >= least_ns:
            place = (one.factors["cpu"], int(one.factors["process"]))
            found.setdefault(place, []).append((float(one.at_ns), one.value))
    return {place: sorted(mine) for place, mine in found.items()}


def runs_between(mine: Sequence[Pause], kept: Sequence[Pause]) -> list[float]:
    """Lengths of the runs between pauses that follow each other and are both kept."""
    known = set(kept)
    pairs = (pair for pair in itertools.pairwise(mine) if known.issuperset(pair))
    return [after - (begin + length) for (begin, length), (after, _) in pairs]


def middle(moments: Iterable[float], period_ns: float) -> float:
    """Mean direction of moments on a circle of one period."""
    turned = (cmath.exp(2j * math.pi * moment / period_ns) for moment in moments)
    return cmath.phase(sum(turned)) / (2 * math.pi) * period_ns % period_ns


def off(moment: float, phase: float, period_ns: float) -> float:
    """How far a moment is from the next one of that phase, before or after."""
    turned = (moment - phase) % period_ns
    return min(turned, period_ns - turned)


def period_phase(mine: Sequence[Pause], period_ns: float, tick_ns: float) -> float:
    """Where periods begin: where most pauses end."""
    ends = [begin + length for begin, length in mine]

    def beside(phase: float) -> list[float]:
        return [end for end in ends if off(end, phase, period_ns) <= tick_ns / 20]

    return middle(beside(max(ends, key=lambda end: len(beside(end)))), period_ns)


def of_setting(mine: Sequence[Pause], period_ns: float, tick_ns: float) -> list[Pause]:
    """The pauses that end where a period begins, to a quarter of a tick; without the first."""
    phase = period_phase(mine, period_ns, tick_ns)
    return [one for one in mine[1:] if off(one[0] + one[1], phase, period_ns) <= tick_ns / 4]


def phase_ms(mine: Sequence[Pause], period_ns: float, tick_ns: float) -> float:
    """When a period begins, on a clock that ticks at 0, modulo the tick.

    A loop sees the end of a pause `WAKE_NS` after the timer that ended it.
    """
    tick = middle((begin for begin, _ in mine), tick_ns)
    period = period_phase(mine, period_ns, tick_ns) - WAKE_NS
    return (period - tick) % tick_ns / 1e6


def own(mine: Sequence[Pause], period_ns: float, tick_ns: float) -> Callable[[Pause], bool]:
    """Tells of a pause of any length whether it is the setting's: it ends where a period begins, or
    it begins at a tick and holds such a moment, since its CPU was not idle then."""
    long = [one for one in mine if one[1] >= tick_ns / 2]
    phase = period_phase(long, period_ns, tick_ns)
    tick = middle((begin for begin, _ in long), tick_ns)

    def of_it(one: Pause) -> bool:
        begin, length = one
        at_tick = off(begin, tick, tick_ns) <= tick_ns / 20
        if off(begin + length, phase, period_ns) <= tick_ns / 4:
            return at_tick or length >= tick_ns / 2
        return at_tick and (phase - begin) % period_ns <= length

    return of_it


def taken(
    loops: Iterable[Sequence[Pause]], duration_ns: float, period_ns: float, tick_ns: float
) -> tuple[float, float]:
    """How often a second something else took a CPU from a loop, and for how many ms on average.

    All pauses of the loops from the end of the setting's first on, but for the setting's. The
    simulator draws exponential lengths: with that rate and mean they take as much time as those
    that were seen, and vary as much from period to period. Zero and zero where there was none.
    """
    seen: list[float] = []
    ran_ns = 0.0
    for mine in loops:
        of_it = own(mine, period_ns, tick_ns)
        stops = [one for one in mine if of_it(one)]
        if not stops:
            continue
        since = sum(stops[0])
        ran_ns += duration_ns - since - sum(length for _, length in stops[1:])
        seen += [length for begin, length in mine if begin >= since and not of_it((begin, length))]
    if not seen:
        return 0.0, 0.0
    mean_ns = sum(length**2 for length in seen) / (2 * sum(seen))
    return sum(seen) / mean_ns / ran_ns * 1e9, mean_ns / 1e6
