"""Signs of congestion in what was measured of a path."""

from __future__ import annotations

import numpy as np

from nephoscope.core import units
from nephoscope.core.records import dataclass
from nephoscope.features.network.bandwidth import LinkTechnology
from nephoscope.features.network.loss import Loss
from nephoscope.stats.statistics.values import Array

_VARIES = 0.10
_QUEUE_RATIO, _QUEUE_NS = 2.0, 1e6
"""A queue: the 95th percentile of the round trip is above twice the minimum and 1 ms more."""
_CLUSTERED = 1.5
_LOSSY = 0.01
"""Loss ratio: links that work lose far less than 1 % by themselves."""
_MIN_DELIVERED_RATIO = 0.95
_RELATED, _RELATED_P = -0.3, 0.01
_FEWEST = 20


@dataclass(frozen=True, slots=True)
class CongestionSign:
    """A sign of congestion. present: whether it was seen. evidence: its figures in a sentence."""

    id: str
    present: bool
    evidence: str


@dataclass(frozen=True, slots=True)
class Congestion:
    """Signs that were looked for. verdict: none, possible (one sign) or likely (several)."""

    signs: tuple[CongestionSign, ...]
    verdict: str


def signs(
    *,
    rtts_ns: Array | None,
    rates: Array | None,
    link: LinkTechnology | None,
    loss: Loss | None,
    goodput: float | None = None,
    offered: float | None = None,
) -> Congestion | None:
    """Returns the signs of congestion for which there are values; None without any.

    rtts_ns: round trips or delays in order of time. rates: throughput of consecutive intervals;
    where both have one value an interval, their relation is a sign too. goodput, offered: payload
    that arrived and that was sent, bytes/s.
    """
    known = (
        _varying_rate(link),
        _queues(rtts_ns),
        _loss(loss),
        _clustered_loss(loss),
        _refused_rate(goodput, offered),
    )
    checked = tuple(sign for sign in (*known, _delay_with_rate(rtts_ns, rates)) if sign is not None)
    if not checked:
        return None
    seen = sum(sign.present for sign in checked)
    return Congestion(checked, "likely" if seen > 1 else "possible" if seen else "none")


def _varying_rate(link: LinkTechnology | None) -> CongestionSign | None:
    if link is None or link.variation is None:
        return None
    return CongestionSign(
        "varying_rate",
        link.verdict != "link" and link.variation > _VARIES,
        f"The rate varies by {100 * link.variation:.1f} % (robust coefficient of variation).",
    )


def _queues(rtts_ns: Array | None) -> CongestionSign | None:
    if rtts_ns is None or rtts_ns.size < _FEWEST:
        return None
    least, high = float(rtts_ns.min()), float(np.percentile(rtts_ns, 95))
    return CongestionSign(
        "queues",
        high > _QUEUE_RATIO * least and high - least > _QUEUE_NS,
        f"The delay is {least / 1e6:.3g} ms at least and {high / 1e6:.3g} ms at the 95th "
        "percentile.",
    )


def _loss(loss: Loss | None) -> CongestionSign | None:
    if loss is None or loss.ratio.low is None:
        return None
    return CongestionSign(
        "loss",
        loss.ratio.low > _LOSSY,
        f"{100 * loss.ratio.value:.3g} % [{100 * loss.ratio.low:.3g}, "
        f"{100 * (loss.ratio.high or 1):.3g}] of {loss.sent} packets were lost; a sign from "
        f"{100 * _LOSSY:g} % on.",
    )


def _refused_rate(goodput: float | None, offered: float | None) -> CongestionSign | None:
    if goodput is None or not offered:
        return None
    return CongestionSign(
        "offered_rate_not_carried",
        goodput < _MIN_DELIVERED_RATIO * offered,
        f"{units.format_value(8 * goodput, 'bits_per_s')} arrived of "
        f"{units.format_value(8 * offered, 'bits_per_s')} that were sent.",
    )


def _clustered_loss(loss: Loss | None) -> CongestionSign | None:
    if loss is None:
        return None
    burst = loss.burst_ratio
    clustered = burst is not None and burst > _CLUSTERED
    how = "" if burst is None else f"; runs of lost packets are {burst:.2f} times as long as random"
    return CongestionSign(
        "clustered_loss",
        loss.lost > 0 and clustered,
        f"{loss.lost} of {loss.sent} packets were lost{how}.",
    )


def _delay_with_rate(rtts_ns: Array | None, rates: Array | None) -> CongestionSign | None:
    if rtts_ns is None or rates is None or rtts_ns.size != rates.size or rates.size < _FEWEST:
        return None
    if not (np.ptp(rtts_ns) and np.ptp(rates)):
        return None
    from scipy.stats import spearmanr

    correlation, p = spearmanr(rtts_ns, rates)
    return CongestionSign(
        "delay_rises_as_rate_falls",
        bool(correlation < _RELATED and p < _RELATED_P),
        f"Spearman's correlation of delay and rate is {correlation:.2f} (p = {p:.2g}).",
    )
