"""A proxy between a controller and any HTTP interface, which loses, delays and spoils answers.

It forwards byte for byte, so that signatures over the head of a request stay right: the client's
endpoint is the proxy, and the `Host` that the client signed is passed on.
"""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

FAULTS = {
    "drop": "the connection ends before the request is forwarded",
    "lose": "the request is forwarded, the answer is not",
    "delay": "the answer comes late, by up to `delay_s`",
    "duplicate": "the request is forwarded twice; the second answer comes back",
    "error": "502, and the request is not forwarded",
    "error-after": "502, though the request was forwarded",
    "truncate": "the answer ends in the middle",
}
"""Fault -> what happens."""


@dataclass
class _Message:
    head: bytes
    body: bytes

    @property
    def whole(self) -> bytes:
        return self.head + self.body


@dataclass
class Proxy:
    """A proxy that runs in threads of this process. rates: fault -> share of the requests."""

    target: tuple[str, int]
    rates: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    delay_s: float = 0.5

    def __post_init__(self) -> None:
        if unknown := set(self.rates) - set(FAULTS):
            raise ValueError(f"no such faults: {unknown}")
        self.happened: Counter[str] = Counter()
        self.requests = 0
        self._random = random.Random(self.seed)
        self._lock = threading.Lock()
        self._closed = False
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)

    @property
    def endpoint(self) -> str:
        """The address for clients."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def serve(self) -> None:
        """Accepts connections until it is closed."""
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._follow, args=(client,), daemon=True).start()

    def close(self) -> None:
        self._closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _draw(self) -> str:
        """The fault of the next request, "" for none."""
        with self._lock:
            self.requests += 1
            drawn = self._random.random()
            for fault, rate in self.rates.items():
                drawn -= rate
                if drawn < 0:
                    self.happened[fault] += 1
                    return fault
        return ""

    def _follow(self, client: socket.socket) -> None:
        """Requests of one connection, one after the other."""
        with client, contextlib.suppress(OSError, ValueError):
            client.settimeout(60)
            reader = client.makefile("rb")
            while (request := _read(reader)) is not None:
                answer = self._answer(request)
                if answer is None:
                    return
                client.sendall(answer)
                if answer.startswith(b"HTTP/1.1 502") or not _is_whole(answer):
                    return

    def _answer(self, request: _Message) -> bytes | None:
        fault = self._draw()
        if fault == "drop":
            return None
        if fault == "error":
            return _BAD_GATEWAY
        answer = self._forward(request)
        if fault == "duplicate":
            answer = self._forward(request)
        if fault == "lose":
            return None
        if fault == "error-after":
            return _BAD_GATEWAY
        if fault == "delay":
            with self._lock:
                pause_s = self._random.uniform(0, self.delay_s)
            time.sleep(pause_s)
        if fault == "truncate":
            return answer.head + answer.body[: len(answer.body) // 2]
        return answer.whole

    def _forward(self, request: _Message) -> _Message:
        with socket.create_connection(self.target, timeout=60) as server:
            server.sendall(request.whole)
            answer = _read(server.makefile("rb"), no_body=request.head.startswith(b"HEAD "))
            if answer is None:
                raise ConnectionResetError
            return answer


_BAD_GATEWAY = (
    b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 11\r\nConnection: close\r\n\r\nBad Gateway"
)


def _read(reader: socket.SocketIO | object, no_body: bool = False) -> _Message | None:
    """One request or answer; None at the end of the connection."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = reader.readline(65536)  # type: ignore[union-attr]
        if not line:
            return None
        head += line
    fields = {
        name.strip().lower(): value.strip()
        for name, colon, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])
        if colon
    }
    status = head.split(b" ", 2)[1] if head.startswith(b"HTTP/") else b""
    if no_body or status in (b"204", b"304") or status.startswith(b"1"):
        return _Message(head, b"")
    if b"chunked" in fields.get(b"transfer-encoding", b""):
        return _Message(head, _chunks(reader))
    if b"content-length" in fields:
        return _Message(head, reader.read(int(fields[b"content-length"])))  # type: ignore[attr-defined]
    return _Message(head, reader.read() if status else b"")  # type: ignore[attr-defined]


def _chunks(reader: object) -> bytes:
    body = b""
    while True:
        line = reader.readline(1024)  # type: ignore[attr-defined]
        size = int(line.split(b";")[0], 16)
        body += line + reader.read(size + 2)  # type: ignore[attr-defined]
        if size == 0:
            return body


def _is_whole(answer: bytes) -> bool:
    head, _, body = answer.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(body) == int(line.partition(b":")[2])
    # Without a length the answer ends with its connection, unless it is in chunks.
    return b"chunked" in head.lower() and body.endswith(b"0\r\n\r\n")


@contextlib.contextmanager
def between(target: str, *, seed: int = 0, delay_s: float = 0.5, **rates: float) -> Iterator[Proxy]:
    """A proxy before an address such as http://127.0.0.1:8774, with faults at rates of 0..1
    (`error_after=0.1` for error-after)."""
    host, _, port = target.removeprefix("http://").rstrip("/").partition(":")
    named = {name.replace("_", "-"): rate for name, rate in rates.items()}
    proxy = Proxy((host, int(port)), named, seed, delay_s)
    threading.Thread(target=proxy.serve, daemon=True).start()
    try:
        yield proxy
    finally:
        proxy.close()
