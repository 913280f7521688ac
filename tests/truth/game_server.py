"""A game server (A2S or Quake 3) that answers each query as planned, and notes how long it took."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

SO_TIMESTAMPNS = 35
"""Of asm-generic/socket.h; Python has no name for it."""

MESSAGES = {
    "a2s": (
        b"\xff\xff\xff\xffTSource Engine Query\0",
        b"\xff\xff\xff\xffI\x11Planned\0map\0folder\0game\0\x0a\0\x05\x20\x02dl\0\x01",
    ),
    "quake3": (
        b"\xff\xff\xff\xffgetstatus",
        b"\xff\xff\xff\xffstatusResponse\n\\sv_hostname\\Planned\\mapname\\map\\gamename\\folder"
        b"\\version\\game\\sv_maxclients\\32\n" + b'0 48 "a"\n' * 5,
    ),
}
"""Protocol -> its query, and the answer of this server."""

_FACTS = {
    "name": "Planned",
    "map": "map",
    "folder": "folder",
    "game": "game",
    "players": 5,
    "places": 32,
}
# The Quake 3 engine does not state which players are bots.
FACTS = {"a2s": {**_FACTS, "bots": 2}, "quake3": _FACTS}


@dataclass
class GameServer:
    """delays_s: time to the answer of each query, None for one that is never answered. taken_s: how
    long each answer really took, from the kernel's stamp of the query: late wake-ups of the server
    are in it."""

    port: int
    delays_s: Sequence[float | None]
    taken_s: list[float | None] = field(default_factory=list)


def arrival_ns(ancillary: Sequence[tuple[int, int, bytes]]) -> int:
    """When the kernel took a datagram in, in ns since the epoch."""
    (stamp,) = [data for _, kind, data in ancillary if kind == SO_TIMESTAMPNS]
    seconds, nanoseconds = struct.unpack("qq", stamp[:16])
    return int(seconds * 1_000_000_000 + nanoseconds)


@contextmanager
def answering(delays_s: Sequence[float | None], protocol: str) -> Iterator[GameServer]:
    """Serves on loopback. The first query, which comes before a trial, is answered at once."""
    question, answer = MESSAGES[protocol]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind(("127.0.0.1", 0))
        own.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        server = GameServer(own.getsockname()[1], delays_s)
        is_over = threading.Event()

        def serve() -> None:
            own.settimeout(0.05)
            is_first = True
            while not is_over.is_set():
                try:
                    query, stamps, _, source = own.recvmsg(2048, 64)
                except TimeoutError:
                    continue
                assert query == question
                if not is_first:
                    delay_s = delays_s[len(server.taken_s)]
                    server.taken_s.append(delay_s)
                    if delay_s is None:
                        continue
                    time.sleep(delay_s)
                    server.taken_s[-1] = (time.time_ns() - arrival_ns(stamps)) / 1e9
                is_first = False
                own.sendto(answer, source)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server
        finally:
            is_over.set()
            thread.join()
