"""Heartbeats: datagrams from outside that the guest answers with its counters.

They show what a user of the guest sees: the longest time without an answer, the datagrams that
were lost, and how much work and how many writes the guest did in each interval.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from nephoscope.measure.lab.network import namespaces

PORT = 7000
PAGE_BYTES = 4096
_REQUEST, _ANSWER = struct.Struct("<QQQ"), struct.Struct("<QQQQQ")
_SO_TIMESTAMPNS = 35
_STAMP = struct.Struct("@qq")


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """An answer of the guest. Times in ns since the epoch by this machine's clock.

    pages: writes to pages until then. work: units of work until then.
    """

    number: int
    sent_ns: int
    arrived_ns: int
    pages: int
    work: int


@dataclass(frozen=True, slots=True)
class HeartbeatRecord:
    """All heartbeats of a time: when each was sent, by its number, and the answers in order."""

    sent_ns: Sequence[int]
    answers: Sequence[HeartbeatAnswer]


class Heartbeats:
    """Sends heartbeats until `close`. `pages_per_s` is the rate of writes that they ask for."""

    def __init__(self, netns: Path, address: str, interval_s: float) -> None:
        self.pages_per_s = 0
        self._address, self._interval_s = (address, PORT), interval_s
        self._sent_ns: list[int] = []
        self._answers: list[HeartbeatAnswer] = []
        self._ended = threading.Event()
        self._socket = namespaces.within(netns, _new_socket)
        self._threads = [
            threading.Thread(target=work, name="heartbeats", daemon=True)
            for work in (self._send, self._receive)
        ]
        for thread in self._threads:
            thread.start()

    def record(self) -> HeartbeatRecord:
        """Returns what was sent and answered so far."""
        return HeartbeatRecord(tuple(self._sent_ns), tuple(self._answers))

    @property
    def answered(self) -> int:
        """Number of answers so far."""
        return len(self._answers)

    def close(self) -> None:
        """Ends both threads."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self._socket.close()

    def _send(self) -> None:
        due_s = time.monotonic()
        while not self._ended.is_set():
            now_ns = time.time_ns()
            request = _REQUEST.pack(len(self._sent_ns), now_ns, self.pages_per_s)
            self._sent_ns.append(now_ns)
            with contextlib.suppress(OSError):  # not answered, which is what is counted
                self._socket.sendto(request, self._address)
            due_s = max(due_s + self._interval_s, time.monotonic() - self._interval_s)
            time.sleep(max(0.0, due_s - time.monotonic()))

    def _receive(self) -> None:
        while not self._ended.is_set():
            try:
                data, extra, _, _ = self._socket.recvmsg(_ANSWER.size, 64)
            except OSError:  # no answer in time, or a host that is unreachable
                continue
            if len(data) == _ANSWER.size:
                number, sent_ns, pages, work, _ = _ANSWER.unpack(data)
                self._answers.append(HeartbeatAnswer(number, sent_ns, _arrival(extra), pages, work))


def _new_socket() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    made.settimeout(0.1)
    return made


def _arrival(extra: Sequence[tuple[int, int, bytes]]) -> int:
    """The kernel's time of arrival: a busy machine wakes the reader late."""
    for level, kind, data in extra:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
            seconds, nanoseconds = _STAMP.unpack(data[: _STAMP.size])
            return int(seconds) * 10**9 + int(nanoseconds)
    return time.time_ns()


def longest_gap_ns(record: HeartbeatRecord, since_ns: int, until_ns: int) -> int:
    """Longest time between two successive answers that overlaps a time. Raises ValueError where
    no answer came before, or none after it."""
    arrivals = [answer.arrived_ns for answer in record.answers]
    gaps = [
        later - first
        for first, later in pairwise(arrivals)
        if later > since_ns and first < until_ns
    ]
    if not gaps or arrivals[0] > since_ns or arrivals[-1] < until_ns:
        raise ValueError("the guest did not answer before and after it")
    return max(gaps)


def lost_and_sent(record: HeartbeatRecord, since_ns: int, until_ns: int) -> tuple[int, int]:
    """Heartbeats sent within a time that were never answered, and all that were sent in it."""
    answered = {answer.number for answer in record.answers}
    sent = [number for number, at_ns in enumerate(record.sent_ns) if since_ns <= at_ns < until_ns]
    return sum(number not in answered for number in sent), len(sent)


def rates_per_s(record: HeartbeatRecord, since_ns: int, until_ns: int) -> tuple[float, float]:
    """Page writes and units of work per second between the first and the last answer of a time.

    Raises ValueError where it has fewer than two answers.
    """
    inside = [answer for answer in record.answers if since_ns <= answer.arrived_ns <= until_ns]
    if len(inside) < 2 or inside[-1].arrived_ns == inside[0].arrived_ns:
        raise ValueError("fewer than two answers")
    first, last = inside[0], inside[-1]
    elapsed_s = (last.arrived_ns - first.arrived_ns) / 1e9
    return (last.pages - first.pages) / elapsed_s, (last.work - first.work) / elapsed_s
