"""What loops get, over whole periods: shares and budgets with their intervals.

A window cuts periods, and where loops share a budget it cuts unequal numbers of theirs; a share
over the window is off by up to a part of a period. So shares are counted between two refills, for
all loops in the same span; the interval is Student's over the periods in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nephoscope.core.model import Estimate
from nephoscope.features.scheduler.inference.replenishments import Replenishments, long_gaps
from nephoscope.features.scheduler.inference.verdict import Fit, Gap, Loop, ObservationWindow
from nephoscope.stats.statistics.estimates import mapped
from nephoscope.stats.statistics.means import mean_t
from nephoscope.stats.statistics.values import Array

CONFIDENCE = 0.95
_LEAST_CYCLES = 6
_PARTS = 10


def lost_between(gaps: Sequence[Gap], edges: Array) -> Array:
    """Time in gaps within each of the spans between ascending edges, shape (edges - 1,)."""
    if not gaps:
        return np.zeros(edges.size - 1)
    starts = np.array([float(gap.start_ns) for gap in gaps])
    ends = starts + np.array([gap.length_ns for gap in gaps])
    # Gaps of one loop follow one another: the lost time up to an edge is a broken line.
    moments = np.column_stack([starts, ends]).ravel()
    before = np.repeat(np.concatenate([[0.0], np.cumsum(ends - starts)]), 2)[1:-1]
    up_to: Array = np.interp(edges, moments, before)
    return np.diff(up_to)


def edges_of(loops: Sequence[Loop], replenishments: Replenishments, origin_ns: float) -> Array:
    """Replenishments from the first to the last that all loops of a window saw."""
    period = replenishments.period_ns
    first = max((loop.gaps[0].start_ns for loop in loops if loop.gaps), default=0)
    last = min((loop.gaps[-1].end_ns for loop in loops if loop.gaps), default=0)
    low = int(np.ceil((first - origin_ns) / period))
    high = int(np.floor((last - origin_ns) / period + 1e-3))
    edges: Array = origin_ns + period * np.arange(low, max(high, low) + 1, dtype=float)
    return edges


def together(window: ObservationWindow, replenishments: Replenishments) -> Array:
    """CPUs that all loops had in each period; one grid for all of them."""
    origin = next((start_ns for start_ns in replenishments.origins_ns if start_ns is not None), 0.0)
    edges = edges_of(window.loops, replenishments, origin)
    lost = sum((lost_between(loop.gaps, edges) for loop in window.loops), np.zeros(edges.size - 1))
    return len(window.loops) - lost / replenishments.period_ns


def apart(loops: Sequence[Loop], replenishments: Replenishments) -> Array:
    """The share of each loop in each of its periods, all in one array."""
    sharing = []
    for loop, origin in zip(loops, replenishments.origins_ns, strict=True):
        if origin is not None:
            edges = edges_of([loop], replenishments, origin)
            sharing.append(1 - lost_between(loop.gaps, edges) / replenishments.period_ns)
    return np.concatenate(sharing) if sharing else np.zeros(0)


def share_of(values: Array, unit: str) -> Estimate | None:
    """Mean of the shares of periods with its interval; None for no periods."""
    if not values.size:
        return None
    estimate = mean_t(values, unit=unit, confidence=CONFIDENCE)
    method = f"mean over {values.size} periods between refills; Student's t"
    return replace(estimate, method=method, note="")


def fit_of(share: Estimate | None, replenishments: Replenishments | None) -> Fit:
    """Share, slice and period; the slice is the share of the period, with both their errors."""
    if replenishments is None:
        return Fit(share)
    how = f"regression of {replenishments.n} moments of refill on their numbers"
    period = Estimate(
        replenishments.period_ns,
        replenishments.low_ns,
        replenishments.high_ns,
        CONFIDENCE,
        replenishments.n,
        "ns",
        how,
    )
    if share is None:
        return Fit(None, None, period)
    low = None if share.low is None else share.low * replenishments.low_ns
    high = None if share.high is None else share.high * replenishments.high_ns
    slice_ns = Estimate(
        share.value * replenishments.period_ns,
        low,
        high,
        CONFIDENCE,
        share.n,
        "ns",
        "share times period",
    )
    return Fit(share, slice_ns, period)


def over_window(loops: Sequence[Loop], unit: str) -> Estimate:
    """Returns what loops had together over their window, with an interval from ten parts of it.

    Without ten gaps the parts cannot be told, and there is no interval.
    """
    total = sum(loop.share for loop in loops)
    method = "1 minus gaps over the window"
    gaps = sorted((gap for loop in loops for gap in loop.gaps), key=lambda gap: gap.start_ns)
    if len(gaps) < _PARTS:
        note = f"{len(gaps)} gaps: too few for an interval."
        return Estimate(total, None, None, CONFIDENCE, 1, unit, method, note)
    edges = np.linspace(gaps[0].start_ns, gaps[-1].end_ns, _PARTS + 1)
    parts = len(loops) - sum(
        (lost_between(loop.gaps, edges) for loop in loops), np.zeros(_PARTS)
    ) / np.diff(edges)
    half = mean_t(parts, unit=unit, confidence=CONFIDENCE)
    if half.low is None or half.high is None:
        return replace(half, value=total, method=method)
    width = (half.high - half.low) / 2
    low, high = max(0.0, total - width), min(float(len(loops)), total + width)
    how = f"{method}; Student's t over {_PARTS} parts of it"
    return Estimate(total, low, high, CONFIDENCE, _PARTS, unit, how)


def mean_over_window(loops: Sequence[Loop]) -> Estimate:
    """Returns the mean share of loops over their window; see `over_window`."""
    return mapped(over_window(loops, "ratio"), lambda share: share / len(loops))


def cycle_ns(loops: Sequence[Loop]) -> Estimate | None:
    """Mean time from long gap to long gap of loops that take turns; None below six."""
    lengths = [np.diff([gap.start_ns for gap in long_gaps(loop.gaps)]) for loop in loops]
    values = (
        np.concatenate([length.astype(float) for length in lengths]) if lengths else np.zeros(0)
    )
    if values.size < _LEAST_CYCLES:
        return None
    estimate = mean_t(values, unit="ns", confidence=CONFIDENCE)
    return replace(estimate, method=f"mean of {values.size} times from gap to gap; Student's t")
