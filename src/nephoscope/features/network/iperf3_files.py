"""Series of a network path in the JSON reports of iperf3.

What the receiver counted is the goodput; the sender's rate of UDP tells only what was offered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nephoscope.core.errors import UsageError
from nephoscope.core.reading.numbers import NumberRange
from nephoscope.features.network.bandwidth import HEADERS
from nephoscope.features.network.series import PathSeries

LARGEST = 1e24
"""Largest number that is read."""


def _size(cell: Any) -> float:
    """Returns a number from 0 on. Raises ValueError."""
    try:
        return NumberRange(0, LARGEST).read(cell)
    except ValueError as error:
        raise ValueError(
            f"'{str(cell)[:40]}' {error}, where a number from 0 on is expected"
        ) from None


def read(source: str, document: Mapping[str, Any]) -> PathSeries:
    """Returns rates, retransmissions, round trips and losses of a report.

    Of two directions at once (--bidir) the series is that from client to server; the received rate
    of the other one is among its values. UsageError for a report of a failure and a damaged one.
    """
    if error := document.get("error"):
        raise UsageError(f"{source}: iperf3 failed: {str(error)[:200]}.", "Run it again.")
    try:
        return _series(source, document)
    except KeyError as error:
        problem = f"lacks {error}"
    except (IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        problem = f"is damaged: {error}"
    raise UsageError(f"{source}: the report of iperf3 {problem}.", "Use `iperf3 --json`.")


def _series(source: str, document: Mapping[str, Any]) -> PathSeries:
    protocol = str(document["start"]["test_start"]["protocol"]).lower()
    if protocol not in HEADERS:
        raise ValueError(f"its protocol '{protocol[:40]}' is neither TCP nor UDP")
    # The last interval may be a sliver of a few ms; those of --omit are no part of the test.
    intervals = [
        interval
        for interval in document["intervals"]
        if _size(interval["sum"]["seconds"]) > 0.01 and not interval["sum"].get("omitted")
    ]
    if not intervals:
        raise KeyError("intervals")
    end = document["end"]
    lengths = np.array([_size(interval["sum"]["seconds"]) for interval in intervals])
    rates = np.array([_size(interval["sum"]["bytes"]) for interval in intervals]) / lengths
    series = PathSeries(
        source,
        bytes_per_s=rates,
        interval_s=lengths,
        protocol=protocol,
        received_bytes_per_s=_received(end),
        reverse_bytes_per_s=_rate(end.get("sum_received_bidir_reverse")),
    )
    if protocol == "udp":
        reverse = bool(document["start"]["test_start"].get("reverse"))
        return _with_losses(series, end, reverse=reverse)
    retransmits = end["sum_sent"].get("retransmits")
    segment = _size(document["start"].get("tcp_mss_default") or 1448)
    senders = [stream.get("sender", {}) for stream in end.get("streams", ())]
    rtts = [
        max(
            (_size(stream["rtt"]) for stream in interval["streams"] if stream.get("rtt")),
            default=0.0,
        )
        for interval in intervals
    ]
    least = [_size(sender["min_rtt"]) for sender in senders if sender.get("min_rtt")]
    return replace(
        series,
        sent_bytes=_size(end["sum_sent"]["bytes"]),
        retransmitted_bytes=None if retransmits is None else _size(retransmits) * segment,
        bulk_rtts_ns=np.array(rtts) * 1e3 if all(rtts) else None,
        base_rtt_ns=1e3 * min(least) if least else None,
    )


def _rate(total: Any) -> float | None:
    """Returns the rate of a total in bytes/s; None without one."""
    if not isinstance(total, Mapping) or not _size(total.get("seconds") or 0):
        return None
    return _size(total["bytes"]) / _size(total["seconds"])


def _received(end: Mapping[str, Any]) -> float | None:
    """Returns the rate that the receiver counted; None where the report lacks it."""
    received = _rate(end.get("sum_received"))
    # Without the receiver's report the total has its keys and no bytes.
    return received if received or not _rate(end.get("sum")) else None


def _with_losses(series: PathSeries, end: Mapping[str, Any], *, reverse: bool) -> PathSeries:
    """Adds what the receiver counted of UDP; the intervals are the sender's unless reversed."""
    notes, counts = [], None
    for key in ("sum_received", "sum"):
        total = end.get(key) or {}
        if "packets" not in total or "lost_packets" not in total:
            continue
        lost, packets = int(total["lost_packets"]), int(total["packets"])
        if 0 <= lost <= packets and packets:  # of reordered packets iperf3 counts some below 0
            counts = counts or (lost, packets)
        else:
            what = f"{lost} lost packets among {packets} ({key})"
            notes.append(f"The report counts {what}, which is no loss ratio.")
    received = series.received_bytes_per_s
    if received is None and counts:
        sent = _rate(end.get("sum"))
        received = None if sent is None else sent * (1 - counts[0] / counts[1])
    if not reverse:
        notes.append(
            "The intervals of the report are the sender's: only the receiver's total is goodput."
            if received is not None
            else "The report has only what was sent, so that the goodput is not known."
        )
    return replace(
        series,
        received_bytes_per_s=received,
        offered_bytes_per_s=_rate(end.get("sum_sent")) if reverse else None,
        rates_are_sent=not reverse,
        lost=counts[0] if counts else None,
        sent=counts[1] if counts else None,
        notes=tuple(notes),
    )
