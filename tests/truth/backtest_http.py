"""A web server with set service times, and users who ask it at random: what runs inside the lab.

`serve` answers `GET /BYTES` after a service time that is set: instances take requests in turn,
each in order of arrival or all at once, equally. The service is a wait, by the clock: what is
compared is the network and the lines in front of the service, and not what else this machine
computes. `load` asks at moments that were drawn before the first request (open loop), and counts
each response from when it was due. The streams of asyncio; nothing but the standard library.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import json
import random
import socket
import sys
from typing import Any

LIMIT = 1 << 20
END = b"\r\n\r\n"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Line:
    """An instance that serves in order of arrival, each request for as long."""

    def __init__(self, service_s: float) -> None:
        self.service_s = service_s
        self.free = 0.0

    async def serve(self) -> None:
        """Waits for its turn and its service; a late timer of one request delays no other."""
        now = asyncio.get_running_loop().time()
        self.free = max(now, self.free) + self.service_s
        await asyncio.sleep(self.free - now)


class Shared:
    """An instance that serves all its requests at once, equally (processor sharing)."""

    def __init__(self, service_s: float) -> None:
        self.service_s = service_s
        self.jobs: list[tuple[float, int, asyncio.Future[None]]] = []
        self.numbers = itertools.count()
        self.each = 0.0
        """Service that a request had which was there from the beginning."""
        self.at = 0.0
        self.timer: asyncio.TimerHandle | None = None

    async def serve(self) -> None:
        """Waits until this request has had its service."""
        loop = asyncio.get_running_loop()
        self._count_to(loop.time())
        done: asyncio.Future[None] = loop.create_future()
        heapq.heappush(self.jobs, (self.each + self.service_s, next(self.numbers), done))
        self._announce()
        await done

    def _count_to(self, now: float) -> None:
        while self.jobs:
            ends = self.at + (self.jobs[0][0] - self.each) * len(self.jobs)
            if ends > now:
                self.each += (now - self.at) / len(self.jobs)
                break
            # At its true end, however late the timer was.
            self.each, _, done = heapq.heappop(self.jobs)
            self.at = ends
            if not done.done():
                done.set_result(None)
        self.at = now

    def _announce(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if self.jobs:
            after = (self.jobs[0][0] - self.each) * len(self.jobs)
            self.timer = asyncio.get_running_loop().call_later(max(after, 0.0), self._tick)

    def _tick(self) -> None:
        self._count_to(asyncio.get_running_loop().time())
        self._announce()


async def serve(params: dict[str, Any]) -> None:
    """Serves until it is ended. params: address, port, service_ms, instances, discipline."""
    kind = {"fifo": Line, "sharing": Shared}[params["discipline"]]
    turn = itertools.cycle([kind(params["service_ms"] / 1e3) for _ in range(params["instances"])])

    async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(END)
                size = int(head.split(b" ", 2)[1].lstrip(b"/"))
                await next(turn).serve()
                # In one piece: a head that travels alone takes a segment of the first window.
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Length: %d%s%s" % (size, END, b"x" * size)
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    listens = socket.create_server((params["address"], params["port"]), backlog=1024)
    # What is simulated is slow start (RFC 5681), whatever this machine uses by default: BBR spreads
    # a window over a third of a round trip and more, and pages take an eighth longer.
    listens.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
    server = await asyncio.start_server(answers, sock=listens, limit=LIMIT)
    say({"ready": True})
    await server.serve_forever()


class Users:
    """The users of one place, who ask one site."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params
        self.idle: list[Streams] = []
        self.opened = 0
        self.response_ms: list[float] = []

    async def open(self) -> Streams:
        """A new connection."""
        self.opened += 1
        return await asyncio.open_connection(
            self.params["address"], self.params["port"], limit=LIMIT
        )

    async def get(self, streams: Streams, size: int) -> None:
        """One request and its whole answer."""
        reader, writer = streams
        filler = "x" * max(0, self.params["request_bytes"] - 60)
        writer.write(f"GET /{size} HTTP/1.1\r\nHost: lab\r\nX-Filler: {filler}\r\n\r\n".encode())
        head = await reader.readuntil(END)
        length = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])
        assert length == size
        await reader.readexactly(length)

    async def ask(self) -> None:
        """One request on a connection that is there already."""
        streams = self.idle.pop() if self.idle else await self.open()
        await self.get(streams, self.params["response_bytes"])
        self.idle.append(streams)

    async def load_page(self) -> None:
        """A document over a new connection, then its objects over several."""
        page = self.params["page"]
        first = await self.open()
        await self.get(first, page["document_bytes"])
        chains = min(page["connections"], page["objects"])

        async def chain(number: int) -> None:
            streams = first if number == 0 else await self.open()
            for _ in range(number, page["objects"], chains):
                await self.get(streams, page["object_bytes"])
            streams[1].close()

        await asyncio.gather(*(chain(number) for number in range(chains)))

    async def run(self) -> None:
        """Asks at random moments; what is due in the first `warm_s` is asked and not counted."""
        params = self.params
        loop = asyncio.get_running_loop()
        if not params.get("page"):
            self.idle = [await self.open() for _ in range(params["connections"])]
            for streams in self.idle:
                await self.get(streams, 1)
        draw = random.Random(params["seed"])
        began = loop.time()

        async def one(due: float) -> None:
            await asyncio.sleep(began + due - loop.time())
            await (self.load_page() if params.get("page") else self.ask())
            if due >= params["warm_s"]:
                self.response_ms.append((loop.time() - began - due) * 1e3)

        due, asked = 0.0, []
        while True:
            due += draw.expovariate(params["rate_per_s"])
            if due > params["seconds"]:
                break
            asked.append(asyncio.create_task(one(due)))
        await asyncio.gather(*asked)


async def load(params: dict[str, Any]) -> None:
    """Says how long each response took."""
    users = Users(params)
    await users.run()
    say({"response_ms": users.response_ms, "opened": users.opened})


def say(line: dict[str, Any]) -> None:
    """One line of JSON."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    verb = {"serve": serve, "load": load}[sys.argv[1]]
    asyncio.run(verb(json.loads(sys.argv[2])))
