"""Delay variation of a series of packets: jitter (RFC 3550), IPDV (RFC 3393), PDV (RFC 5481)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nephoscope.core.records import dataclass
from nephoscope.stats.linear_filter import linear_filter
from nephoscope.stats.statistics.values import Array, Numbers, finite

POINTS = 1_000
"""Packets of which a document has the single values; of longer series, that many evenly spaced."""

_GAIN = 1 / 16
"""Of the filter of RFC 3550, section 6.4.1."""


Order = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class DelayVariation:
    """Variation of the delay of consecutive packets, in ns.

    jitter_ns: of RFC 3550 after the last packet; jitter_max_ns: its maximum. ipdv: absolute
    difference of the delays of consecutive packets. pdv: delay minus the minimum delay; a
    percentile is null where the packets are too few for it. jitters_ns, pdvs_ns: by packet.
    """

    packets: int
    minimum_ns: float
    median_ns: float
    jitter_ns: float
    jitter_max_ns: float
    ipdv_mean_ns: float
    ipdv_p50_ns: float
    ipdv_p95_ns: float | None
    ipdv_p99_ns: float | None
    pdv_p50_ns: float
    pdv_p95_ns: float | None
    pdv_p99_ns: float | None
    pdv_p99_9_ns: float | None
    jitters_ns: tuple[float, ...]
    pdvs_ns: tuple[float, ...]


def variation(delays_ns: Numbers, *, arrival_order: Order | None = None) -> DelayVariation:
    """Returns the delay variation of packets that arrived, in the order of sending.

    delays_ns: one-way delays, or differences of receive and send times whose clocks differ by a
    constant. arrival_order: the packets in the order of their arrival, in which their jitter is
    computed; None: the same order. Raises Refused below two packets.
    """
    delays = finite(delays_ns, least=2, statistic="delay variation")
    differences = np.abs(np.diff(delays))
    jitters = interarrival_jitter(
        differences if arrival_order is None else np.diff(delays[arrival_order])
    )
    pdvs = delays - delays.min()
    return DelayVariation(
        packets=delays.size,
        minimum_ns=float(delays.min()),
        median_ns=float(np.median(delays)),
        jitter_ns=float(jitters[-1]),
        jitter_max_ns=float(jitters.max()),
        ipdv_mean_ns=float(differences.mean()),
        ipdv_p50_ns=float(np.median(differences)),
        ipdv_p95_ns=percentile(differences, 0.95),
        ipdv_p99_ns=percentile(differences, 0.99),
        pdv_p50_ns=float(np.median(pdvs)),
        pdv_p95_ns=percentile(pdvs, 0.95),
        pdv_p99_ns=percentile(pdvs, 0.99),
        pdv_p99_9_ns=percentile(pdvs, 0.999),
        jitters_ns=thinned(jitters),
        pdvs_ns=thinned(pdvs),
    )


def interarrival_jitter(differences: Numbers) -> Array:
    """Returns the jitter of RFC 3550 after each packet but the first: J += (|D| - J) / 16."""
    return linear_filter([_GAIN], [1, _GAIN - 1], np.abs(np.asarray(differences, dtype=float)))


def percentile(values: Array, q: float) -> float | None:
    """Returns the nearest-rank percentile; None where fewer than 1 / (1 - q) values exist."""
    if values.size * (1 - q) < 1 - 1e-9:
        return None
    return float(np.sort(values)[math.ceil(q * values.size - 1e-9) - 1])


def thinned(values: Array) -> tuple[float, ...]:
    """Returns all values of a short series, else `POINTS` of them, evenly spaced."""
    if values.size > POINTS:
        values = values[np.linspace(0, values.size - 1, POINTS).round().astype(int)]
    return tuple(float(value) for value in values)
