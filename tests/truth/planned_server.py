"""A server of HTTP/1.1 or of Redis that answers each request as planned, and notes its times."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Answer:
    """When the first part of a response follows a request, and when the rest follows that.

    kind: "value", "error", or "none" for a request that gets no response.
    """

    first_s: float = 0.0
    rest_s: float = 0.0
    kind: str = "value"

    @property
    def total_s(self) -> float:
        return self.first_s + self.rest_s


@dataclass(frozen=True)
class Dialect:
    """How requests of a protocol end, and its responses in two parts."""

    end: bytes
    parts: dict[str, tuple[bytes, bytes]]


BODY = b"x" * 500
DIALECTS = {
    "http.load": Dialect(
        b"\r\n\r\n",
        {
            "value": (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", BODY),
            "error": (b"HTTP/1.1 500 Broken\r\nContent-Length: 500\r\n\r\n", BODY),
        },
    ),
    "kv.load": Dialect(
        b"ks000000000000\r\n",
        {"value": (b"$500\r\n", BODY + b"\r\n"), "error": (b"-ERR ", b"planned\r\n")},
    ),
}
KV_PARAMS = {"key_prefix": "k", "fill": False, "delete_keys": False, "value_bytes": 500}


@dataclass
class Times:
    """Times of one request on the clock of this machine (s)."""

    read: float
    first: float = 0.0
    end: float = 0.0


@dataclass
class Planned:
    """The server while it runs; `times` has one entry for each request, in order of arrival."""

    address: tuple[str, int]
    dialect: Dialect
    plan: Sequence[Answer]
    times: list[Times] = field(default_factory=list)
    accepted: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return "http://{}:{}/".format(*self.address)

    def bytes_of(self, kind: str) -> int:
        """Length of a response."""
        return sum(map(len, self.dialect.parts[kind]))

    def serve(self, connection: socket.socket) -> None:
        unread = b""
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while data := connection.recv(65536):
                unread += data
                while self.dialect.end in unread:
                    _, _, unread = unread.partition(self.dialect.end)
                    self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        with self._lock:
            answer = self.plan[len(self.times) % len(self.plan)]
            times = Times(time.monotonic())
            self.times.append(times)
        if answer.kind == "none":
            return
        first, rest = self.dialect.parts[answer.kind]
        time.sleep(answer.first_s)
        connection.sendall(first)
        times.first = time.monotonic()
        time.sleep(answer.rest_s)
        connection.sendall(rest)
        times.end = time.monotonic()


@contextmanager
def answering(
    benchmark: str,
    plan: Sequence[Answer],
    listener: socket.socket | None = None,
    tls: ssl.SSLContext | None = None,
) -> Iterator[Planned]:
    """Serves the load generator of that name, each connection in a thread of its own."""
    listener = listener or socket.create_server(("127.0.0.1", 0))
    server = Planned(listener.getsockname(), DIALECTS[benchmark], plan)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            server.accepted += 1
            threading.Thread(target=serve, args=[connection], daemon=True).start()

    def serve(connection: socket.socket) -> None:
        try:
            server.serve(tls.wrap_socket(connection, server_side=True) if tls else connection)
        except OSError:  # the generator gave the connection up
            return

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def params_of(benchmark: str, server: Planned) -> dict[str, object]:
    """Parameters with which the generator asks this server."""
    if benchmark == "http.load":
        return {"url": server.url}
    host, port = server.address
    return {**KV_PARAMS, "host": host, "port": port, "operations": ["get"], "keys": 1}
