"""A game server (A2S) that answers each query as planned, and notes how long it took."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

QUERY = b"\xff\xff\xff\xffTSource Engine Query\0"
INFO = b"\xff\xff\xff\xffI\x11Planned\0map\0folder\0game\0\x0a\0\x05\x20\x02dl\0\x01"
FACTS = {
    "name": "Planned",
    "map": "map",
    "folder": "folder",
    "game": "game",
    "players": 5,
    "places": 32,
    "bots": 2,
}


@dataclass
class GameServer:
    """delays_s: time to the answer of each query, None for one that is never answered."""

    port: int
    delays_s: Sequence[float | None]
    taken_s: list[float | None] = field(default_factory=list)


@contextmanager
def answering(delays_s: Sequence[float | None]) -> Iterator[GameServer]:
    """Serves on loopback. The first query, which comes before a trial, is answered at once."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind(("127.0.0.1", 0))
        server = GameServer(own.getsockname()[1], delays_s)
        is_over = threading.Event()

        def serve() -> None:
            own.settimeout(0.05)
            is_first = True
            while not is_over.is_set():
                try:
                    query, source = own.recvfrom(2048)
                except TimeoutError:
                    continue
                assert query == QUERY
                if not is_first:
                    delay_s = delays_s[len(server.taken_s)]
                    server.taken_s.append(delay_s)
                    if delay_s is None:
                        continue
                    began = time.monotonic()
                    time.sleep(delay_s)
                    server.taken_s[-1] = time.monotonic() - began
                is_first = False
                own.sendto(INFO, source)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server
        finally:
            is_over.set()
            thread.join()
