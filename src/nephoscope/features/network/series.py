"""Everything that a series of packets or of rates shows of a network path."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from nephoscope.core.records import dataclass
from nephoscope.features.network import bandwidth, congestion, delay, loss, transport, voice
from nephoscope.features.network.bandwidth import LinkTechnology, TokenBucket
from nephoscope.features.network.congestion import Congestion
from nephoscope.features.network.delay import DelayVariation, Order
from nephoscope.features.network.loss import Flags, Loss
from nephoscope.features.network.transport import LatencyUnderLoad, TcpFigures
from nephoscope.features.network.voice import VoiceQuality
from nephoscope.stats.statistics.values import Array, Refused
from nephoscope.stats.statistics.variation import robust_cv

_LEAST_IN_PLATEAU = 4
_HALVED = (
    "One-way delay is taken as half of the shortest round trip, and delay variation and loss of "
    "the round trip as those of one direction: an upper bound."
)


@dataclass(frozen=True, slots=True)
class PathSeries:
    """Packets or rates of one path from a file or a trial, in order of time.

    delays_ns: of each packet; not a number where it was lost. unordered: whether their order has no
    meaning; jitter_ns is then known from elsewhere. one_way: whether they are one-way delays, else
    round trips. arrival_order: the packets that arrived in the order of their arrival, counted
    without those that were lost; None: the order of sending. loaded: for each packet whether the
    path was under load. bytes_per_s, interval_s: payload rate and length of each interval. lost,
    sent: packets, where only the counts are known. rates_are_sent: whether the rates are what a
    sender offered, of which nobody knows how much arrived in an interval. offered_bytes_per_s:
    what the sender offered in the mean, beside rates of the receiver. received_bytes_per_s: of the
    whole series, as the receiver counted; reverse_bytes_per_s: the same of the other direction,
    at the same time. bulk_rtts_ns: round trip of TCP in each interval.
    """

    source: str = ""
    delays_ns: Array | None = None
    unordered: bool = False
    jitter_ns: float | None = None
    one_way: bool = False
    arrival_order: Order | None = None
    spacing_s: float | None = None
    loaded: Flags | None = None
    bytes_per_s: Array | None = None
    interval_s: Array | None = None
    rates_are_sent: bool = False
    offered_bytes_per_s: float | None = None
    received_bytes_per_s: float | None = None
    reverse_bytes_per_s: float | None = None
    protocol: str = "tcp"
    lost: int | None = None
    sent: int | None = None
    sent_bytes: float | None = None
    retransmitted_bytes: float | None = None
    bulk_rtts_ns: Array | None = None
    base_rtt_ns: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PathAnalysis:
    """Analysis of a series; null where it lacks the values.

    goodput_bytes_per_s: payload that arrived; offered_bytes_per_s: payload that was sent, where
    that is known too; reverse_goodput_bytes_per_s: payload that arrived in the other direction at
    the same time. rates_are_sent: whether the rates over time are what was sent, else goodput.
    """

    source: str
    delay: DelayVariation | None = None
    one_way: bool = False
    loss: Loss | None = None
    voice: VoiceQuality | None = None
    latency_under_load: LatencyUnderLoad | None = None
    goodput_bytes_per_s: float | None = None
    offered_bytes_per_s: float | None = None
    reverse_goodput_bytes_per_s: float | None = None
    rates_bytes_per_s: tuple[float, ...] = ()
    rates_are_sent: bool = False
    link: LinkTechnology | None = None
    token_bucket: TokenBucket | None = None
    tcp: TcpFigures | None = None
    congestion: Congestion | None = None
    notes: tuple[str, ...] = ()


def analyse_series(
    series: PathSeries,
    *,
    codec: str = "g711",
    buffer_ns: float | None = None,
    mtu_bytes: int = 1500,
    confidence: float = 0.95,
) -> PathAnalysis:
    """Returns all analyses for which a series has the values."""
    notes = list(series.notes)
    delays, lost = series.delays_ns, None
    varied = losses = calls = under_load = None
    if delays is not None:
        lost = np.isnan(delays)
        arrived = delays[~lost]
        if series.loaded is not None:
            under_load = _under_load(series, delays, series.loaded, lost)
        if arrived.size > 1 and not series.unordered:
            varied = delay.variation(arrived, arrival_order=series.arrival_order)
        if not series.unordered:
            losses = loss.of_series(lost, slot_s=series.spacing_s, confidence=confidence)
        if arrived.size:
            # Of round trips the half, with their whole variation as its upper bound.
            calls = voice.of_packets(
                delays if series.one_way else delays - arrived.min() / 2,
                lost,
                codec=codec,
                buffer_ns=buffer_ns,
                jitter_ns=varied.jitter_max_ns if varied else series.jitter_ns,
                notes=() if series.one_way else (_HALVED,),
            )
        else:
            notes.append("All packets are lost, so that there is no delay to analyse.")
    if losses is None and series.sent:
        losses = loss.of_counts(series.lost or 0, series.sent, confidence=confidence)
    rates = series.bytes_per_s
    goodput, offered, limit, bucket = series.received_bytes_per_s, None, None, None
    if rates is not None and series.interval_s is not None:
        mean = float(np.average(rates, weights=series.interval_s))
        if series.rates_are_sent:
            offered = mean
            if goodput:
                limit = bandwidth.link(8 * goodput, protocol=series.protocol, mtu_bytes=mtu_bytes)
        else:
            goodput = mean if goodput is None else goodput
            offered = series.offered_bytes_per_s
            bucket, limit = _limits(series, rates, series.interval_s, mtu_bytes)
    return PathAnalysis(
        source=series.source,
        delay=varied,
        one_way=series.one_way,
        loss=losses,
        voice=calls,
        latency_under_load=under_load or _bulk_latency(series),
        goodput_bytes_per_s=goodput,
        offered_bytes_per_s=offered,
        reverse_goodput_bytes_per_s=series.reverse_bytes_per_s,
        rates_bytes_per_s=() if rates is None else delay.thinned(rates),
        rates_are_sent=series.rates_are_sent,
        link=limit,
        token_bucket=bucket,
        tcp=_tcp(series),
        congestion=congestion.signs(
            rtts_ns=series.bulk_rtts_ns if delays is None or lost is None else delays[~lost],
            rates=rates,
            link=limit,
            loss=losses,
            goodput=goodput,
            offered=offered,
        ),
        notes=tuple(notes),
    )


def _under_load(
    series: PathSeries, delays: Array, loaded: Flags, lost: Flags
) -> LatencyUnderLoad | None:
    idle, under = delays[~lost & ~loaded], delays[~lost & loaded]
    if not idle.size or not under.size:
        return None
    return transport.latency_under_load(idle, under, one_way=series.one_way)


def _limits(
    series: PathSeries, rates: Array, lengths: Array, mtu_bytes: int
) -> tuple[TokenBucket | None, LinkTechnology | None]:
    """The token bucket, and what limits the goodput (its sustained part, where there is one)."""
    bucket = None
    with suppress(Refused):  # fewer intervals than a token bucket takes
        bucket = bandwidth.token_bucket(
            rates, lengths, protocol=series.protocol, mtu_bytes=mtu_bytes
        )
    if bucket is not None:
        begin = int(np.searchsorted(np.cumsum(lengths), bucket.burst_s)) + 1
        rates = rates[begin:] if begin < rates.size else rates[-1:]
    goodput = float(np.median(rates))
    if not goodput > 0:
        return bucket, None
    varied = float(robust_cv(rates)) if rates.size >= _LEAST_IN_PLATEAU else None
    limit = bandwidth.link(
        8 * goodput, protocol=series.protocol, mtu_bytes=mtu_bytes, variation=varied
    )
    return bucket, limit


def _bulk_latency(series: PathSeries) -> LatencyUnderLoad | None:
    if series.bulk_rtts_ns is None or not series.base_rtt_ns or not series.bulk_rtts_ns.size:
        return None
    return transport.latency_under_load([series.base_rtt_ns], series.bulk_rtts_ns)


def _tcp(series: PathSeries) -> TcpFigures | None:
    if series.protocol != "tcp":
        return None
    rtts = series.bulk_rtts_ns
    again, sent = series.retransmitted_bytes, series.sent_bytes
    figures = transport.tcp_figures(
        sent_bytes=sent,
        # Of segments that are counted, and taken as full ones, the bytes are not known exactly.
        retransmitted_bytes=None if again is None or sent is None or again > sent else again,
        base_rtt_ns=series.base_rtt_ns,
        loaded_rtt_ns=None if rtts is None or not rtts.size else float(rtts.mean()),
    )
    return figures if figures != TcpFigures() else None
