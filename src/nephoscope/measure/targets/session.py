"""Several programs of one trial: prepared, introduced, started at one moment, stopped.

Every benchmark, load and third-party tool with a far side is run by these steps: the server starts
and shows where it listens; the client is given that address and a token that the server made for
it; when all sides are ready they start at one moment; in the end the server is stopped and returns
its counters.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from nephoscope.core.errors import BenchmarkFailed
from nephoscope.core.records import dataclass
from nephoscope.measure.targets.base import IpVersion, Peer, TargetTrial
from nephoscope.measure.targets.probe.process import Running
from nephoscope.measure.targets.probe.target import Target

LEAD_NS = 50_000_000
"""How far ahead the common start lies: longer than it takes to announce it to all sides."""


@dataclass(slots=True)
class Side:
    """One program of a trial, prepared.

    offset_ns: the clock there minus the controller's, as its `ready` line showed it; 0 where they
    are one.
    """

    target: str
    running: Running
    ready: Mapping[str, Any]
    offset_ns: int = 0

    async def end(self) -> None:
        """Ends it at once, whatever it does; nothing that it counted is kept."""
        await self.running.end()


@dataclass(slots=True)
class Server(Side):
    """The far side that serves one client. peer: what the client needs to reach it."""

    peer: Peer | None = None

    async def stop(self, limit_s: float) -> TargetTrial:
        """Stops it in order; returns what it counted, in `done.served`."""
        await self.running.stop()
        return await self.running.result(limit_s)


async def prepare(
    target: Target,
    benchmark: str,
    params: Mapping[str, Any],
    *,
    deadline_s: float,
    limit_s: float | None = None,
    peer: Peer | None = None,
    gap_meter: bool = False,
) -> Side:
    """Starts a program and waits until it is ready. Raises BenchmarkFailed when it is not.

    deadline_s: when it ends itself. limit_s: how long to wait for it, by default as long.
    """
    running = await target.start(benchmark, params, deadline_s, peer=peer, gap_meter=gap_meter)
    return await until_ready(target, running, limit_s or deadline_s)


async def until_ready(target: Target, running: Running, limit_s: float) -> Side:
    """Waits until a program that was started on a target is ready; ends it when it is not."""
    ready = await _ready(running, limit_s)
    return Side(target.name, running, ready, _offset_ns(target, ready))


async def serve(
    target: Target,
    client: Target,
    benchmark: str,
    params: Mapping[str, Any],
    *,
    deadline_s: float,
    limit_s: float | None = None,
    version: IpVersion | None = None,
) -> Server:
    """Starts the far side of a benchmark for one client; it lets in no other.

    version: of the Internet Protocol; by default the one that the two share. Raises TargetError
    when the client has no way to it, BenchmarkFailed when it does not become ready.
    """
    endpoint = target.endpoint(client, version)
    running = await target.start(benchmark, params, deadline_s, serve=endpoint.bind)
    ready = await _ready(running, limit_s or deadline_s)
    port = ready.get("port")
    if not isinstance(port, int):
        await running.end()
        words = f"the server on {target.name} does not report its port."
        raise BenchmarkFailed("bad_output", words, "Check the probe's version.")
    peer = Peer(endpoint.address, port, str(ready.get("token", "")))
    return Server(target.name, running, ready, _offset_ns(target, ready), peer)


async def go(sides: Sequence[Side], lead_ns: int = LEAD_NS) -> int:
    """Starts all sides at one moment; returns it on the controller's wall clock (ns)."""
    if len(sides) == 1:
        await sides[0].running.go()
        return time.time_ns()
    at_ns = time.time_ns() + lead_ns
    for side in sides:
        await side.running.go(at_ns + side.offset_ns)
    return at_ns


async def run_pair(
    client: Target,
    server: Target,
    benchmark: str,
    params: Mapping[str, Any],
    timeout_s: float,
    version: IpVersion | None = None,
) -> tuple[TargetTrial, TargetTrial]:
    """Runs one trial of a benchmark with two sides on open targets; returns the client's and the
    server's. Raises BenchmarkFailed when one of them does not become ready."""
    serving = await serve(server, client, benchmark, params, deadline_s=timeout_s, version=version)
    try:
        near = await prepare(client, benchmark, params, deadline_s=timeout_s, peer=serving.peer)
        await go([near])
        trial = await near.running.result(timeout_s)
        return trial, await serving.stop(timeout_s)
    finally:
        await serving.end()


async def _ready(running: Running, limit_s: float) -> Mapping[str, Any]:
    try:
        return await running.ready(limit_s)
    except BaseException:
        await running.end()
        raise


def _offset_ns(target: Target, ready: Mapping[str, Any]) -> int:
    there_ns = ready.get("wall_ns")
    if target.shares_clock or not isinstance(there_ns, int):
        return 0
    return there_ns - time.time_ns()
