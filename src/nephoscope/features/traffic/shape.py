"""The shape of traffic: bursts of packets, their sizes and the intervals between them."""

from __future__ import annotations

import numpy as np

from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass
from nephoscope.stats.statistics import estimates
from nephoscope.stats.statistics.values import Array, Refused

GAP_S = 0.010
"""Time without packets that ends a burst, unless another is given."""

_ROUNDING_S = 0.5e-9
"""Of differences of times, which are known to a nanosecond."""
_WINDOW_S = 0.010
_MOST_WINDOWS = 10_000_000
POINTS = 1_000
"""Bursts of which a document has the single values."""


@dataclass(frozen=True, slots=True)
class Burst:
    """A burst. start_s: since the first packet."""

    start_s: float
    duration_s: float
    packets: int
    size_bytes: float


@dataclass(frozen=True, slots=True)
class TrafficShape:
    """Bursts of a series of packets.

    interval_s: from the start of a burst to the start of the next; pause_s: from its end. Their
    medians are null for one burst. busy_ratio: share of the time within bursts. peak_to_mean: rate
    of the fullest 10 ms over the mean rate.
    """

    packets: int
    total_bytes: float
    duration_s: float
    gap_s: float
    bursts_count: int
    burst_bytes: Estimate
    interval_s: Estimate | None
    pause_s: Estimate | None
    busy_ratio: float
    peak_to_mean: float | None
    bursts: tuple[Burst, ...]


def bursts_of(times_s: Array, sizes: Array, gap_s: float) -> list[Burst]:
    """Returns the bursts of packets in order of time: no gap within one is longer than gap_s."""
    if not times_s.size:
        raise Refused("Traffic without packets has no shape.")
    starts = np.concatenate([[0], np.flatnonzero(np.diff(times_s) > gap_s + _ROUNDING_S) + 1])
    ends = np.append(starts[1:], times_s.size)
    totals = np.add.reduceat(sizes, starts)
    return [
        Burst(
            float(times_s[first]),
            float(times_s[last - 1] - times_s[first]),
            int(last - first),
            float(total),
        )
        for first, last, total in zip(starts, ends, totals, strict=True)
    ]


def shape_of(times_s: Array, sizes: Array, gap_s: float = GAP_S) -> TrafficShape:
    """Returns the shape of packets in order of time. Raises Refused without packets."""
    bursts = bursts_of(times_s, sizes, gap_s)
    duration = float(times_s[-1] - times_s[0])
    begins = np.array([burst.start_s for burst in bursts])
    lengths = np.array([burst.duration_s for burst in bursts])
    several = len(bursts) > 1
    return TrafficShape(
        packets=int(times_s.size),
        total_bytes=float(sizes.sum()),
        duration_s=duration,
        gap_s=gap_s,
        bursts_count=len(bursts),
        burst_bytes=estimates.median([burst.size_bytes for burst in bursts], unit="bytes"),
        interval_s=estimates.median(np.diff(begins), unit="s") if several else None,
        pause_s=estimates.median((begins[1:] - (begins + lengths)[:-1]), unit="s")
        if several
        else None,
        busy_ratio=float(lengths.sum() / duration) if duration else 1.0,
        peak_to_mean=_peak_to_mean(times_s, sizes, duration),
        bursts=tuple(bursts[:POINTS]),
    )


def _peak_to_mean(times_s: Array, sizes: Array, duration: float) -> float | None:
    windows = int(duration / _WINDOW_S)
    if not 2 <= windows <= _MOST_WINDOWS:
        return None
    full, _ = np.histogram(times_s, bins=windows, weights=sizes)
    return float(full.max() / full.mean()) if full.any() else None
