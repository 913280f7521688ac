"""After a sleep: does the budget come back at fixed moments, or does its period begin anew?

A quota is refilled by a timer that runs on whatever the program does: the grid of refills goes
through the sleeps. A reservation begins a new period when its thread wakes up: each stretch
between two sleeps has a grid that begins at its wake-up. Sources: `scheduler/sched-bwc.rst`;
`sched-deadline.rst` (the wake-up rule of the constant bandwidth server); Xen's SEDF does the same
(a domain that blocked for longer than its deadline gets a new one).
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from nephoscope.scheduler.inference.refills import long_gaps, resultant
from nephoscope.scheduler.inference.verdict import Fit, Look

_CLEAR = 0.25
"""How much more coherent one grid has to be than the other."""
_LEAST = 6


class Refilled(StrEnum):
    """When a budget comes back."""

    FIXED = "fixed"
    ON_WAKING = "on waking"


def refilled(look: Look, fit: Fit) -> Refilled | None:
    """Which of both the gaps of a look with sleeps follow; None when they do not tell."""
    if fit.period_ns is None:
        return None
    loop = look.loops[0]
    gaps = long_gaps(loop.gaps)
    wakes = np.array([one.end_ns for one in loop.sleeps])
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
        return Refilled.FIXED
    if anew >= fixed + _CLEAR:
        return Refilled.ON_WAKING
    return None
