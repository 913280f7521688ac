"""A server of http.serve in the hands of a test, and what its service times have to be."""

from __future__ import annotations

import http.client
import json
import math
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from channel import TOKEN, Controlled, controlled

LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
PATIENCE_S = 120.0
_MASK = (1 << 64) - 1


class Server:
    """The far side of a session, as a test sees it."""

    def __init__(self, probe: Controlled) -> None:
        self._probe = probe
        ready = probe.ready()
        self.address: tuple[str, int] = (ready["address"], ready["port"])

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(*self.address, timeout=PATIENCE_S)

    def get(self, path: str, method: str = "GET") -> tuple[int, bytes]:
        """Status and body of one request on a connection of its own."""
        connection = self.connect()
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def socket(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=PATIENCE_S)

    def send(self, request: bytes) -> bytes:
        """What comes back until the server closes the connection."""
        with self.socket() as client:
            client.sendall(request)
            return b"".join(iter(lambda: client.recv(65536), b""))

    @property
    def pid(self) -> int:
        return self._probe.process.pid

    def counters(self) -> dict[str, Any]:
        """The counters while it goes on."""
        found: dict[str, Any] = json.loads(self.get("/counters")[1])
        return found

    def stop(self) -> dict[str, Any]:
        """Stops it; returns what it served."""
        self._probe.say("stop")
        found: dict[str, Any] = self._probe.trial().done["served"]
        return found


@contextmanager
def serving(
    params: dict[str, Any] | None = None,
    *,
    bind: str = "127.0.0.1",
    before: Sequence[str] = (),
    deadline_s: int = 60,
) -> Iterator[Server]:
    """A server that is gone afterwards; `before` are words ahead of the probe's."""
    more = ["--bind", bind]
    with controlled(
        "serve", "http.serve", params, more=more, before=before, deadline_s=deadline_s
    ) as probe:
        probe.say(f"token {TOKEN}")
        yield Server(probe)


def rows(served: dict[str, Any], kind: str) -> list[dict[str, int]]:
    """The recorded requests of a kind in the order of their start."""
    columns = served["records"]["columns"]
    found = [dict(zip(columns, row, strict=True)) for row in served["records"]["rows"]]
    return sorted((row for row in found if row["kind"] == kind), key=lambda row: row["start_ns"])


class SplitMix64:
    """The generator that the page of http.serve names."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def bits(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        bits = self._state
        bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & _MASK
        return bits ^ (bits >> 31)

    def uniform(self) -> float:
        return (self.bits() >> 11) / 2.0**53

    def normal(self) -> float:
        first, second = self.uniform(), self.uniform()
        return math.sqrt(-2 * math.log(1 - first)) * math.cos(2 * math.pi * second)


def service_times(distribution: str, mean_ns: float, cv: float, seed: int) -> Iterator[float]:
    """The service times (ns) that http.serve draws."""
    draw = SplitMix64(seed)
    sigma = math.sqrt(math.log1p(cv * cv))
    while True:
        if distribution == "exponential":
            yield mean_ns * -math.log(1 - draw.uniform())
        elif distribution == "lognormal":
            yield mean_ns * math.exp(sigma * draw.normal() - sigma * sigma / 2)
        else:
            yield mean_ns


def body(length: int) -> bytes:
    """A body of that length (at most one period)."""
    draw = SplitMix64(1)
    words = b"".join(draw.bits().to_bytes(8, "little") for _ in range(-(-length // 8)))
    return bytes(LETTERS[byte & 63] for byte in words[:length])
