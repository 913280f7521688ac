"""Response time as a client perceives it, estimated from what a server can count (after Certes).

A server's own times begin when a connection is accepted. A client has waited before: for each SYN
that was dropped, a retransmission timeout, which doubles; then for the handshake, TLS, and the
round trips of slow start. Source: Olshefski, Nieh, Agrawal, Inferring client response time at the
web server, SIGMETRICS 2002.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from nephoscope.core.errors import UsageError
from nephoscope.core.model import Estimate
from nephoscope.core.reading import textfile
from nephoscope.stats.queueing import retry_wait_s
from nephoscope.stats.statistics.proportions import wilson

_COUNTER = re.compile(r"-?[0-9]{1,20}")


@dataclass(frozen=True, slots=True)
class ClientTime:
    """Estimate of the client's mean response time and its parts, in ns.

    drop: share of SYNs that are dropped. retry_ns: mean wait for retransmitted SYNs. setup_ns:
    round trips of the handshake and of TLS. slow_start_ns: round trips of the request and its
    answer, whose window doubles with each. total_ns: all of it with the server's own time; null
    where that is not stated. linear_timeouts: retransmissions before the timeout doubles.
    """

    drop: Estimate
    rto_ns: float
    linear_timeouts: int
    retry_ns: float
    setup_round_trips: int
    setup_ns: float | None
    slow_start_round_trips: int | None
    slow_start_ns: float | None
    server_ns: float | None
    total_ns: float | None
    assumptions: tuple[str, ...]


def slow_start_round_trips(size_bytes: float, window_bytes: float) -> int:
    """Returns the round trips of an answer whose window begins at this size and doubles."""
    return math.ceil(math.log2(size_bytes / window_bytes + 1) - 1e-12)


def estimate(
    dropped: int,
    attempts: int,
    *,
    rto_s: float = 1.0,
    linear: int = 0,
    rtt_s: float | None = None,
    tls_round_trips: int = 0,
    size_bytes: float | None = None,
    window_bytes: float = 14_600,
    server_s: float | None = None,
    drop: float | None = None,
) -> ClientTime:
    """Returns the client's time. drop: share where it is known without counts."""
    if drop is None:
        share = wilson(dropped, attempts)
    else:
        share = Estimate(drop, None, None, 0.95, attempts, "ratio", "stated share")
    retry_ns = 1e9 * retry_wait_s(share.value, rto_s, linear)
    setup = 1 + tls_round_trips
    trips = None if size_bytes is None else slow_start_round_trips(size_bytes, window_bytes)
    setup_ns = None if rtt_s is None else 1e9 * setup * rtt_s
    slow_ns = None if rtt_s is None or trips is None else 1e9 * trips * rtt_s
    server_ns = None if server_s is None else 1e9 * server_s
    return ClientTime(
        share,
        1e9 * rto_s,
        linear,
        retry_ns,
        setup,
        setup_ns,
        trips,
        slow_ns,
        server_ns,
        None if server_ns is None else server_ns + retry_ns + (setup_ns or 0) + (slow_ns or 0),
        (
            "SYNs are dropped independently of each other.",
            "No packet but SYNs is lost, and clients do not give up.",
        ),
    )


def counters(path: Path) -> Mapping[str, int]:
    """Returns the counters of a copy of /proc/net/netstat and /proc/net/snmp, by GROUP.NAME."""
    lines = textfile.read(path, "copy of counters", UsageError).splitlines()
    values: dict[str, int] = {}
    for names, numbers in pairwise(lines):
        group, _, head = names.partition(":")
        again, _, cells = numbers.partition(":")
        if group == again and head.split()[:1] and not head.split()[0].lstrip("-").isdigit():
            for name, cell in zip(head.split(), cells.split(), strict=False):
                if _COUNTER.fullmatch(cell):
                    values[f"{group}.{name}"] = int(cell)
    if "TcpExt.ListenDrops" not in values or "Tcp.PassiveOpens" not in values:
        raise UsageError(
            f"{path}: TcpExt ListenDrops or Tcp PassiveOpens is missing.",
            "Copy both: cat /proc/net/netstat /proc/net/snmp > FILE.",
        )
    return values


def drops_between(before: Mapping[str, int], after: Mapping[str, int]) -> tuple[int, int]:
    """Returns dropped SYNs and all attempts between two copies of the counters."""
    # ListenDrops has all of them, those of TCPReqQFullDrop too.
    names = ("TcpExt.ListenDrops", "Tcp.PassiveOpens")
    drops, accepted = (after[name] - before[name] for name in names)
    if min(drops, accepted) < 0:
        raise UsageError(
            "The counters of the second file are smaller than those of the first.",
            "Name the earlier copy first; a restart sets them to zero.",
        )
    return drops, drops + accepted
