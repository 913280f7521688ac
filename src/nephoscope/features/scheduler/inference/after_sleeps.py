"""What a loop that sleeps now and then tells of the one who takes its CPU away.

A sleep of the loop is an experiment on the mechanism, and each has its own answer:

* A budget waits for the loop. Time that was slept is not used up, so the gap after a sleep comes
  later by it; and a loop that wakes has budget and runs at once.
* A task that wakes by a timer knows nothing of the sleep. The next gap starts when it would have
  started anyway, and the loop often wakes while the task has the CPU, and gets it late.
* Programs that take turns by weight begin their turns anew when the loop wakes: the moments of the
  gaps after a sleep are no continuation of those before it, but by the chance of ticks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from nephoscope.core.records import dataclass
from nephoscope.features.scheduler.inference.replenishments import (
    long_gaps,
    median_by_time,
    to_nearest,
)
from nephoscope.features.scheduler.inference.verdict import Gap, Loop, ObservationWindow
from nephoscope.stats.statistics.values import Array

ON_TIME_NS = 0.5e6
"""Two gaps by one timer start so close to a whole number of periods apart."""
LATE_NS = 1.5e6
"""A loop that gets its CPU later than that after a sleep was kept from it by somebody."""
_OVERRUN_NS = 6e6
"""A tick and a part of quota: by so much a kernel exceeds a slice, to subtract it from the next; a
shorter sleep may leave a gap where it was."""
_MAIN = 0.5


@dataclass(frozen=True, slots=True)
class AfterSleeps:
    """Counts over all sleeps of a target.

    on_time, delayed: gaps before which the loop slept in the time in which it would have used up a
    budget, and that came when they would have come anyway, or not. continued, moved: first gaps
    after a sleep that are a whole number of periods after a gap before it, or not. late, at_once:
    sleeps that ended where a timer would have had the CPU, after which it came late, or at once.
    seen: gaps. unseen_ratio: of the phases of a timer of this period, those that leave no gap while
    the loops are awake.
    """

    on_time: int = 0
    delayed: int = 0
    continued: int = 0
    moved: int = 0
    late: int = 0
    at_once: int = 0
    seen: int = 0
    unseen_ratio: float = 1.0


def observe(
    windows: Iterable[ObservationWindow], period_ns: float, lengths_ns: Array
) -> AfterSleeps:
    """Returns what the windows with sleeps tell, about gaps of this period and these lengths."""
    counted = [
        _of_loop(loop, window, period_ns, lengths_ns) for window in windows for loop in window.loops
    ]
    return AfterSleeps(
        on_time=sum(counts.on_time for counts in counted),
        delayed=sum(counts.delayed for counts in counted),
        continued=sum(counts.continued for counts in counted),
        moved=sum(counts.moved for counts in counted),
        late=sum(counts.late for counts in counted),
        at_once=sum(counts.at_once for counts in counted),
        seen=sum(counts.seen for counts in counted),
        unseen_ratio=math.prod(counts.unseen_ratio for counts in counted),
    )


def _of_loop(
    loop: Loop, window: ObservationWindow, period_ns: float, lengths_ns: Array
) -> AfterSleeps:
    gap_ns = median_by_time(lengths_ns)
    run_ns = max(0.0, period_ns - gap_ns)
    least_ns = float(np.quantile(lengths_ns, _SHORTEST)) if lengths_ns.size else 0.0
    gaps = [gap for gap in long_gaps(loop.gaps) if gap.length_ns >= _MAIN * gap_ns]
    on_time = delayed = continued = moved = late = at_once = 0
    for sleep, until_ns in _with_next(loop.sleeps, window.window_ns):
        before = [gap for gap in gaps if gap.end_ns <= sleep.start_ns][-_REMEMBERED:]
        after = next((gap for gap in gaps if sleep.end_ns < gap.start_ns < until_ns), None)
        known = before or ([after] if after else [])
        is_whole = sleep.length_ns >= window.sleep_ns
        wakes_ns = sleep.start_ns + window.sleep_ns
        if is_whole and known and _is_taken(wakes_ns, known[-1], period_ns, least_ns):
            is_late = sleep.length_ns - window.sleep_ns > LATE_NS
            late += is_late
            at_once += not is_late
        if after is None or not before:
            continue
        off = [to_nearest(float(after.start_ns - gap.start_ns), period_ns) for gap in before]
        is_on_time = float(np.median(np.abs(off))) <= ON_TIME_NS
        continued += is_on_time
        moved += not is_on_time
        slept = min(sleep.end_ns, after.start_ns) - max(sleep.start_ns, after.start_ns - run_ns)
        if slept > _OVERRUN_NS:
            on_time += is_on_time
            delayed += not is_on_time
    unseen = _unseen_ratio(loop.sleeps, window.window_ns, period_ns)
    return AfterSleeps(on_time, delayed, continued, moved, late, at_once, len(gaps), unseen)


def _unseen_ratio(sleeps: Sequence[Gap], window_ns: float, period_ns: float) -> float:
    phases = np.arange(_PHASES) / _PHASES * period_ns
    moments = phases[:, None] + np.arange(math.ceil(window_ns / period_ns))[None, :] * period_ns
    is_asleep = moments >= window_ns
    for sleep in sleeps:
        is_asleep |= (moments >= sleep.start_ns) & (moments < sleep.end_ns)
    return float(is_asleep.all(axis=1).mean())


_PHASES = 100
_REMEMBERED = 5
"""Gaps before a sleep: the median of these excuses one that somebody else began."""
_SHORTEST = 0.1
"""Quantile of the lengths of gaps that nearly every gap has."""


def _is_taken(moment_ns: float, gap: Gap, period_ns: float, least_ns: float) -> bool:
    """Returns whether a timer that made this gap would have the CPU then, and keep it for long."""
    since = (moment_ns - gap.start_ns) % period_ns
    return ON_TIME_NS < since < least_ns - LATE_NS


def _with_next(sleeps: Sequence[Gap], end_ns: float) -> Iterable[tuple[Gap, float]]:
    """Yields each sleep with the start of the next one, the last with the end of the window."""
    yield from ((sleep, float(after.start_ns)) for sleep, after in pairwise(sleeps))
    if sleeps:
        yield sleeps[-1], end_ns
