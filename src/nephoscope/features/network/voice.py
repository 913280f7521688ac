"""Voice quality of a path by the E-model, and the limits that a path has to keep for calls.

Sources: ITU-T G.107 (E-model, default values), G.113 Appendix I (codecs), G.109 (classes); Cole &
Rosenbluth, Voice over IP performance monitoring, CCR 2001 (approximation).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from nephoscope.core.records import dataclass
from nephoscope.features.network.loss import Flags, burst_ratio, run_lengths
from nephoscope.stats.statistics.values import Array, Refused

_SLR, _RLR, _STMR, _LSTR, _DS = 8.0, 2.0, 15.0, 18.0, 3.0
_TELR, _WEPL, _QDU = 65.0, 110.0, 1.0
_NC, _NFOR, _PS, _PR = -70.0, -64.0, 35.0, 35.0
"""Default values of G.107: loudness, sidetone, echo, quantisation and noise, in dB and dBm."""

_OLR = _SLR + _RLR
_FREE_DELAY_MS = 100.0
"""Absolute delay below which it does not matter."""


@dataclass(frozen=True, slots=True)
class Codec:
    """A codec: equipment impairment, robustness against loss, and the delay that it adds.

    frame_ms: speech in one packet. lookahead_ms: further speech that the encoder needs.
    """

    title: str
    impairment: float
    loss_robustness: float
    frame_ms: float = 20.0
    lookahead_ms: float = 0.0


CODECS: Mapping[str, Codec] = {
    "g711": Codec("G.711 with packet loss concealment", 0, 25.1),
    "g711-plain": Codec("G.711 without packet loss concealment", 0, 4.3),
    "g729a": Codec("G.729A with voice activity detection", 11, 19.0, lookahead_ms=5),
    "g723.1": Codec("G.723.1, 6.3 kbit/s, voice activity detection", 15, 16.1, 30, 7.5),
    "gsm-efr": Codec("GSM enhanced full rate", 5, 10.0),
}
"""Impairments and robustness: G.113 Appendix I; frames and look-ahead: the codecs' definitions."""

CLASSES = (
    (90.0, "very satisfied"),
    (80.0, "satisfied"),
    (70.0, "some users dissatisfied"),
    (60.0, "many users dissatisfied"),
    (50.0, "nearly all users dissatisfied"),
    (-math.inf, "not recommended"),
)
"""Lowest R of each class of G.109."""

DELAY_GOOD_NS, DELAY_MAX_NS = 150e6, 250e6
JITTER_GOOD_NS, JITTER_MAX_NS = 40e6, 75e6
LOSS_MAX = 0.02
"""Limits of calls that the literature on cloud networks uses (Delgado 2010, section 3.5.4)."""

BUFFERS_NS = tuple(step * 10e6 for step in range(1, 31))
"""De-jitter buffers of which the best is taken: 10 to 300 ms."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit for calls. verdict: good, acceptable or exceeded."""

    quantity: str
    value: float
    unit: str
    good: float
    maximum: float
    verdict: str


@dataclass(frozen=True, slots=True)
class VoiceQuality:
    """Quality of calls over a path.

    rating: R of the E-model; mos: the mean opinion score that follows. approximate_rating: by Cole
    and Rosenbluth. ping_tool_mos: of the formula in common ping tools, which nobody has validated;
    null without jitter. mouth_to_ear_ns: network, frame, look-ahead and de-jitter buffer. lost:
    lost in the network or later than the buffer.
    """

    codec: str
    rating: float
    mos: float
    verdict: str
    approximate_rating: float
    ping_tool_mos: float | None
    mouth_to_ear_ns: float
    lost_ratio: float
    late_ratio: float
    burst_ratio: float
    buffer_ns: float | None
    effective_impairment: float
    limits: tuple[Limit, ...]
    notes: tuple[str, ...] = ()


def rating(
    mouth_to_ear_ms: float,
    lost_ratio: float = 0.0,
    burst: float = 1.0,
    codec: Codec = CODECS["g711"],
) -> float:
    """Returns R of the full E-model, with T = Ta and Tr = 2 Ta as of calls over packets."""
    noise = _noise()
    basic = 15 - 1.5 * (_SLR + noise)
    delay = _talker_echo(mouth_to_ear_ms, noise) + _listener_echo(2 * mouth_to_ear_ms, basic)
    delay += _absolute_delay(mouth_to_ear_ms)
    simultaneous = _loudness(noise) + _sidetone(mouth_to_ear_ms) + _quantisation(basic)
    return basic - simultaneous - delay - effective_impairment(lost_ratio, burst, codec)


def effective_impairment(lost_ratio: float, burst: float, codec: Codec) -> float:
    """Returns Ie,eff: the impairment of a codec under loss."""
    percent = 100 * lost_ratio
    if not percent:
        return codec.impairment
    return codec.impairment + (95 - codec.impairment) * percent / (
        percent / burst + codec.loss_robustness
    )


def mean_opinion_score(r: float) -> float:
    """Returns the estimated mean opinion score of a rating (G.107, Annex B)."""
    if r <= 0:
        return 1.0
    if r >= 100:
        return 4.5
    return max(1.0, 1 + 0.035 * r + 7e-6 * r * (r - 60) * (100 - r))


def approximate_rating(mouth_to_ear_ms: float, impairment: float) -> float:
    """Returns R by the approximation of Cole and Rosenbluth."""
    late = max(0.0, mouth_to_ear_ms - 177.3)
    return 93.2 - 0.024 * mouth_to_ear_ms - 0.11 * late - impairment


def ping_tool_mos(latency_ms: float, jitter_ms: float, lost_ratio: float) -> float:
    """Returns the score that common ping tools print, from latency + 2 jitter + 10 ms."""
    effective = latency_ms + 2 * jitter_ms + 10
    r = 93.2 - (effective / 40 if effective < 160 else (effective - 120) / 10)
    return mean_opinion_score(r - 250 * lost_ratio)


def quality(
    mouth_to_ear_ns: float,
    lost_ratio: float,
    *,
    burst: float = 1.0,
    codec: str = "g711",
    jitter_ns: float | None = None,
    network_ns: float | None = None,
    late_ratio: float = 0.0,
    buffer_ns: float | None = None,
    notes: tuple[str, ...] = (),
) -> VoiceQuality:
    """Returns the quality of calls with this mouth-to-ear delay and loss.

    lost_ratio: late packets included. network_ns: one-way delay of the network alone, for the
    formula of ping tools.
    """
    chosen = CODECS[codec]
    delay_ms = mouth_to_ear_ns / 1e6
    r = rating(delay_ms, lost_ratio, burst, chosen)
    impairment = effective_impairment(lost_ratio, burst, chosen)
    limits = [_limit("mouth-to-ear delay", mouth_to_ear_ns, "ns", DELAY_GOOD_NS, DELAY_MAX_NS)]
    if jitter_ns is not None:
        limits.append(_limit("jitter", jitter_ns, "ns", JITTER_GOOD_NS, JITTER_MAX_NS))
    limits.append(_limit("loss", lost_ratio, "ratio", LOSS_MAX, LOSS_MAX))
    if burst > 2 and lost_ratio > LOSS_MAX:
        notes += (
            "The E-model is validated for burst ratios above 2 only below 2 % of loss; the rating "
            "is indicative.",
        )
    of_network = mouth_to_ear_ns if network_ns is None else network_ns
    return VoiceQuality(
        codec=codec,
        rating=r,
        mos=mean_opinion_score(r),
        verdict=next(word for lowest, word in CLASSES if r >= lowest),
        approximate_rating=approximate_rating(delay_ms, impairment),
        ping_tool_mos=None
        if jitter_ns is None
        else ping_tool_mos(of_network / 1e6, jitter_ns / 1e6, lost_ratio - late_ratio),
        mouth_to_ear_ns=mouth_to_ear_ns,
        lost_ratio=lost_ratio,
        late_ratio=late_ratio,
        burst_ratio=burst,
        buffer_ns=buffer_ns,
        effective_impairment=impairment,
        limits=tuple(limits),
        notes=notes,
    )


def of_packets(
    delays_ns: Array,
    lost: Flags,
    *,
    codec: str = "g711",
    buffer_ns: float | None = None,
    jitter_ns: float | None = None,
    notes: tuple[str, ...] = (),
) -> VoiceQuality:
    """Returns the quality of calls over a path whose packets had these delays, in sending order.

    delays_ns: one-way delays; of lost packets without meaning. lost: for each packet. buffer_ns: of
    the receiver; None takes the one with the highest rating. The receiver plays a packet
    `buffer_ns` after the time of the fastest packet; later ones are lost to it.
    """
    if lost.all():
        raise Refused("All packets are lost, so that calls have no delay and no rating.")
    base = float(delays_ns[~lost].min())
    pdvs = np.where(lost, np.inf, delays_ns - base)
    ready = base + 1e6 * (CODECS[codec].frame_ms + CODECS[codec].lookahead_ms)
    network_loss = float(lost.mean())

    def with_buffer(length_ns: float) -> VoiceQuality:
        missing = pdvs > length_ns
        ratio = float(missing.mean())
        burst = burst_ratio(run_lengths(missing), ratio) if ratio else 1.0
        return quality(
            ready + length_ns,
            ratio,
            burst=burst,
            codec=codec,
            jitter_ns=jitter_ns,
            network_ns=base,
            late_ratio=ratio - network_loss,
            buffer_ns=length_ns,
            notes=notes,
        )

    lengths = BUFFERS_NS if buffer_ns is None else (buffer_ns,)
    return max(map(with_buffer, lengths), key=lambda voice: voice.rating)


def _limit(quantity: str, value: float, unit: str, good: float, maximum: float) -> Limit:
    verdict = "good" if value <= good else "acceptable" if value <= maximum else "exceeded"
    return Limit(quantity, value, unit, good, maximum, verdict)


def _noise() -> float:
    """Returns No, the sum of circuit and room noise at the 0 dBr point."""
    receive = _PR + 10 * math.log10(1 + 10 ** ((10 - _LSTR) / 10))
    levels = (
        _NC,
        _PS - _SLR - _DS - 100 + 0.004 * (_PS - _OLR - _DS - 14) ** 2,
        _RLR - 121 + receive + 0.008 * (receive - 35) ** 2,
        _NFOR + _RLR,
    )
    return 10 * math.log10(sum(10 ** (level / 10) for level in levels))


def _loudness(noise: float) -> float:
    x = _OLR + 0.2 * (64 + noise - _RLR)
    return float(20 * ((1 + (x / 8) ** 8) ** (1 / 8) - x / 8))


def _sidetone(talker_ms: float) -> float:
    echo = math.exp(-talker_ms / 4) * 10 ** (-_TELR / 10)
    masking = -10 * math.log10(10 ** (-_STMR / 10) + echo)
    return float(
        12 * (1 + ((masking - 13) / 6) ** 8) ** (1 / 8)
        - 28 * (1 + ((masking + 1) / 19.4) ** 35) ** (1 / 35)
        - 13 * (1 + ((masking - 3) / 33) ** 13) ** (1 / 13)
        + 29
    )


def _quantisation(basic: float) -> float:
    q = 37 - 15 * math.log10(_QDU)
    g = 1.07 + 0.258 * q + 0.0602 * q * q
    y = (basic - 100) / 15 + 46 / 8.4 - g / 9
    return 15 * math.log10(1 + 10**y + 10 ** (46 / 30 - g / 40))


def _talker_echo(talker_ms: float, noise: float) -> float:
    loudness = (
        _TELR
        - 40 * math.log10((1 + talker_ms / 10) / (1 + talker_ms / 150))
        + 6 * math.exp(-0.3 * talker_ms**2)
    )
    gap = (-1.5 * (noise - _RLR) - (80 + 2.5 * (loudness - 14))) / 2
    return (gap + math.sqrt(gap * gap + 100) - 1) * (1 - math.exp(-talker_ms))


def _listener_echo(round_trip_ms: float, basic: float) -> float:
    gap = (basic - 10.5 * (_WEPL + 7) * (round_trip_ms + 1) ** -0.25) / 2
    return float(gap + math.sqrt(gap * gap + 169))


def _absolute_delay(delay_ms: float) -> float:
    if delay_ms <= _FREE_DELAY_MS:
        return 0.0
    x = math.log2(delay_ms / _FREE_DELAY_MS)
    return float(25 * ((1 + x**6) ** (1 / 6) - 3 * (1 + (x / 3) ** 6) ** (1 / 6) + 2))
