"""TCP by the figures of RFC 6349, and latency under load.

Source of the grades: the test of Waveform (increase of latency under load in ms); responsiveness is
round trips per minute under load (draft-ietf-ippm-responsiveness).
"""

from __future__ import annotations

import math

import numpy as np

from nephoscope.core.records import dataclass
from nephoscope.features.network.bandwidth import payload_share
from nephoscope.features.network.delay import percentile
from nephoscope.stats.statistics.values import Numbers, Refused, finite

GRADES = ((5e6, "A+"), (30e6, "A"), (60e6, "B"), (200e6, "C"), (400e6, "D"), (math.inf, "F"))
"""Increase of the round trip under load below which a grade is given, ns."""


@dataclass(frozen=True, slots=True)
class TcpFigures:
    """Figures of RFC 6349; null where an input was not given.

    efficiency_ratio: share of sent bytes that were no retransmissions. buffer_delay_ratio: increase
    of the round trip under load relative to the baseline. transfer_time_ratio: actual over ideal
    time. bandwidth_delay_bytes: window that fills the path. window_limit_bits_per_s: most that the
    given window carries.
    """

    efficiency_ratio: float | None = None
    buffer_delay_ratio: float | None = None
    transfer_time_ratio: float | None = None
    ideal_s: float | None = None
    bandwidth_delay_bytes: float | None = None
    window_limit_bits_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class LatencyUnderLoad:
    """Round trips with and without load on the path, ns. p95: null with fewer than 20 values.

    Of one-way delays there are no round trips per minute.
    """

    idle_median_ns: float
    loaded_median_ns: float
    idle_p95_ns: float | None
    loaded_p95_ns: float | None
    increase_ns: float
    grade: str
    round_trips_per_minute: float | None
    sentence: str


def tcp_figures(
    *,
    sent_bytes: float | None = None,
    retransmitted_bytes: float | None = None,
    base_rtt_ns: float | None = None,
    loaded_rtt_ns: float | None = None,
    actual_s: float | None = None,
    ideal_s: float | None = None,
    bottleneck_bits_per_s: float | None = None,
    window_bytes: float | None = None,
    mtu_bytes: int = 1500,
) -> TcpFigures:
    """Returns the figures of RFC 6349 that the given values allow.

    ideal_s: unless given, the time of sent_bytes at the bottleneck less its headers.
    """
    efficiency = buffer_delay = ratio = product = window_limit = None
    if sent_bytes and retransmitted_bytes is not None:
        if retransmitted_bytes > sent_bytes:
            raise Refused("More bytes are retransmitted than sent; check the two numbers.")
        efficiency = (sent_bytes - retransmitted_bytes) / sent_bytes
    if base_rtt_ns and loaded_rtt_ns is not None:
        buffer_delay = (loaded_rtt_ns - base_rtt_ns) / base_rtt_ns
    if ideal_s is None and bottleneck_bits_per_s and sent_bytes and actual_s:
        ideal_s = sent_bytes * 8 / (bottleneck_bits_per_s * payload_share("tcp", mtu_bytes, 38))
    if actual_s is not None and ideal_s:
        ratio = actual_s / ideal_s
    if bottleneck_bits_per_s and base_rtt_ns:
        product = bottleneck_bits_per_s / 8 * base_rtt_ns / 1e9
    if window_bytes and base_rtt_ns:
        window_limit = 8 * window_bytes / (base_rtt_ns / 1e9)
    return TcpFigures(efficiency, buffer_delay, ratio, ideal_s, product, window_limit)


def latency_under_load(
    idle_ns: Numbers, loaded_ns: Numbers, *, one_way: bool = False
) -> LatencyUnderLoad:
    """Returns the increase of the round trip, or one-way delay, under load with its grade
    (bufferbloat).
    """
    idle, loaded = (finite(ns, statistic="latency under load") for ns in (idle_ns, loaded_ns))
    before, under = float(np.median(idle)), float(np.median(loaded))
    if under <= 0 and not one_way:  # of two clocks, the minimum is 0
        raise Refused("A round trip under load is not above 0; check the times.")
    increase = max(0.0, under - before)
    grade = next(word for limit, word in GRADES if increase < limit)
    return LatencyUnderLoad(
        before,
        under,
        percentile(idle, 0.95),
        percentile(loaded, 0.95),
        increase,
        grade,
        None if one_way else 60e9 / under,
        f"The {'one-way delay' if one_way else 'round trip'} rises from {before / 1e6:.3g} to "
        f"{under / 1e6:.3g} ms under load: grade {grade}.",
    )
