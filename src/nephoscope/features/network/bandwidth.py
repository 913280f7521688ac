"""Link technology or shaper that a goodput suggests, and the parameters of a token bucket.

Sources: IEEE 802.3 (rates; preamble and gap of 20 bytes, header and check of 18 bytes per frame);
RFC 2697 and 2698 (token buckets).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nephoscope.core import units
from nephoscope.core.records import dataclass
from nephoscope.stats.statistics.values import Array, Numbers, Refused, finite
from nephoscope.stats.statistics.variation import robust_cv

_MBITS = (10, 100, 1_000, 2_500, 5_000, 10_000, 25_000, 40_000, 50_000, 100_000, 200_000, 400_000)
TECHNOLOGIES: Mapping[str, float] = {
    f"{rate} Mb/s Ethernet" if rate < 1_000 else f"{rate / 1_000:g} Gb/s Ethernet": rate * 1e6
    for rate in _MBITS
}
"""Name -> line rate, bits/s."""

HEADERS: Mapping[str, int] = {"tcp": 20 + 20 + 12, "udp": 20 + 8}
"""IPv4 and transport headers of a packet, TCP with the timestamp option, bytes."""
_TIMESTAMPS = 12
"""Bytes of that option, which both ends may have switched off."""

_FRAME, _WIRE = 14, 18 + 20
"""Bytes of a frame beyond its IP packet: as a shaper counts, and as the wire carries."""

_NEAR = 0.95
"""Share of the wire limit from which a goodput is that of the link."""
_BEYOND = 1.002
"""Goodput beyond a limit that is still its own: clocks and the last packets of a measurement."""
_ROUND = 0.015
"""Relative distance at which a shaped rate is that of a round number."""
_STEADY = 0.10
"""Coefficient of variation up to which a goodput is held by a limit."""

_LEAST_INTERVALS = 8
_LEAST_BURST = 2
_LEAST_AFTER = 3
_LEAST_RATIO = 1.1
_PLATEAU = 0.9
_EXPLAINED = 0.7
"""Share of the squares that a token bucket has to explain beyond one constant rate."""


@dataclass(frozen=True, slots=True)
class LinkTechnology:
    """Limit of a goodput.

    technology: the slowest Ethernet that carries it. wire_limit_bits_per_s: its maximum goodput
    after headers; of_wire_limit: the share of it that was measured. shaped_to_bits_per_s: rate of a
    shaper that counts frames; null where the link itself is the limit. verdict: link, shaped,
    variable (below every limit and not constant) or unknown (faster than all).
    """

    goodput_bits_per_s: float
    protocol: str
    mtu_bytes: int
    verdict: str
    technology: str | None
    wire_limit_bits_per_s: float | None
    of_wire_limit: float | None
    shaped_to_bits_per_s: float | None
    variation: float | None
    sentence: str


@dataclass(frozen=True, slots=True)
class TokenBucket:
    """A shaper that lets a burst pass and then holds a sustained rate.

    Rates and sizes are of the payload that was counted. bucket_bytes: what passed beyond the
    sustained rate, as the bucket starts full. burst_s: time until the bucket was empty. explained:
    share of the variation of the rates that these three values explain.
    """

    burst_bytes_per_s: float
    sustained_bytes_per_s: float
    bucket_bytes: float
    burst_s: float
    explained: float
    frames_bucket_bytes: float
    frames_sustained_bits_per_s: float


def payload_share(
    protocol: str, mtu_bytes: int, beyond_packet: int, *, timestamps: bool = True
) -> float:
    """Returns the share of payload in what is counted with so many bytes beyond each IP packet.

    timestamps: whether packets of TCP have that option.
    """
    payload = mtu_bytes - HEADERS[protocol]
    payload += _TIMESTAMPS if protocol == "tcp" and not timestamps else 0
    if payload < 1:
        raise Refused(f"A packet of {mtu_bytes} bytes has no room for payload; use a larger MTU.")
    return payload / (mtu_bytes + beyond_packet)


def link(
    goodput_bits_per_s: float,
    *,
    protocol: str = "tcp",
    mtu_bytes: int = 1500,
    variation: float | None = None,
) -> LinkTechnology:
    """Returns what limits a goodput of full-sized packets.

    variation: robust coefficient of variation of the goodput over time; None where it is unknown.
    """
    if not goodput_bits_per_s > 0:
        raise Refused("No payload arrived, so that the link cannot be told from the goodput.")
    name, limit, note = _carrier(goodput_bits_per_s, protocol, mtu_bytes)
    of_limit = shaped = None
    sentence = f"{units.format_value(goodput_bits_per_s, 'bits_per_s')} of payload is "
    if name is None or limit is None:
        verdict = "unknown"
        sentence += "more than any known Ethernet carries."
    else:
        of_limit = min(1.0, goodput_bits_per_s / limit)
        sentence += f"{100 * of_limit:.1f} % of what {name} can carry{note}"
        if of_limit >= _NEAR:
            verdict = "link"
            sentence += " after headers: the link is the limit."
        elif variation is not None and variation > _STEADY:
            verdict = "variable"
            sentence += (
                f" and varies by {100 * variation:.0f} %: neither the link nor a constant shaper "
                "limits it."
            )
        else:
            verdict = "shaped"
            shaped = rounded(goodput_bits_per_s / payload_share(protocol, mtu_bytes, _FRAME))
            constant = "" if variation is not None else " if the rate is constant over time"
            sentence += (
                f" after headers: the path is shaped to {units.format_value(shaped, 'bits_per_s')}"
                f"{constant}, or a sender, receiver or window holds this rate."
            )
    return LinkTechnology(
        goodput_bits_per_s,
        protocol,
        mtu_bytes,
        verdict,
        name,
        limit,
        of_limit,
        shaped,
        variation,
        sentence,
    )


def _carrier(goodput: float, protocol: str, mtu_bytes: int) -> tuple[str | None, float | None, str]:
    """Returns the slowest Ethernet that carries a goodput, its limit, and what that assumes."""
    for name, rate in TECHNOLOGIES.items():
        for timestamps in (True, False) if protocol == "tcp" else (True,):
            limit = rate * payload_share(protocol, mtu_bytes, _WIRE, timestamps=timestamps)
            if goodput <= limit * _BEYOND:
                return name, limit, "" if timestamps else " (TCP without timestamps)"
    return None, None, ""


def rounded(rate: float) -> float:
    """Returns the number of two digits that is within 1.5 % of a rate, else the rate."""
    near = float(f"{rate:.1e}")
    return near if abs(near / rate - 1) <= _ROUND else rate


def token_bucket(
    bytes_per_s: Numbers,
    interval_s: float | Numbers,
    *,
    protocol: str = "tcp",
    mtu_bytes: int = 1500,
) -> TokenBucket | None:
    """Returns the token bucket behind the rates of consecutive intervals; None without one.

    bytes_per_s: payload rate of each interval from the start of the transfer. interval_s: their
    length, or the length of each. The end of the burst is where a constant rate before and after it
    leaves the least squares; the interval that holds it counts for neither side.
    """
    rates = finite(bytes_per_s, least=_LEAST_INTERVALS, statistic="token bucket")
    lengths = np.broadcast_to(np.asarray(interval_s, dtype=float), rates.shape)
    if not (lengths > 0).all():
        raise Refused("An interval of a series of rates has no length; check the times.")
    # A rise to full speed (slow start) is no part of the burst's plateau.
    start = int(np.argmax(rates >= _PLATEAU * rates.max()))
    if rates.size - start < _LEAST_AFTER + 2:
        return None
    end = start + _split(rates[start:])
    plateau, after = rates[start:end], rates[end + 1 :]
    if plateau.size < _LEAST_BURST:  # one fast interval at the start is a buffer
        return None
    burst, sustained = float(np.median(plateau)), float(np.median(after))
    total = _squares(np.concatenate([plateau, after]))
    explained = 1 - (_squares(plateau) + _squares(after)) / total if total else 0.0
    if not sustained or burst < _LEAST_RATIO * sustained or explained < _EXPLAINED:
        return None
    if robust_cv(after) > _STEADY:
        return None
    # A full bucket loses the tokens of a start below the sustained rate.
    excess = (rates[: end + 1] - sustained) * lengths[: end + 1]
    bucket = float(np.maximum(excess, 0).sum())
    frames = 1 / payload_share(protocol, mtu_bytes, _FRAME)
    return TokenBucket(
        burst,
        sustained,
        bucket,
        bucket / (burst - sustained),
        explained,
        bucket * frames,
        8 * sustained * frames,
    )


def _split(values: Array) -> int:
    """Returns the value without which the two sides of it have the least squares."""
    sums = np.concatenate([[0], np.cumsum(values - values.mean())])
    squares = np.concatenate([[0], np.cumsum((values - values.mean()) ** 2)])
    at = np.arange(1, values.size - _LEAST_AFTER)
    after = values.size - at - 1
    before = squares[at] - sums[at] ** 2 / at
    behind = squares[-1] - squares[at + 1] - (sums[-1] - sums[at + 1]) ** 2 / after
    return int(at[np.argmin(before + behind)])


def _squares(values: Array) -> float:
    """Returns the sum of squares about the mean; 0 for no values."""
    return float(((values - values.mean()) ** 2).sum()) if values.size else 0.0
