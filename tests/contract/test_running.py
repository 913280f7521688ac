"""The verb `start` on every kind of target: prepared, told to go, told to stop, served."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from tests.contract.test_targets import factory, machine, using
from tests.measure.targets.test_child import gone

from nephoscope.core.errors import BenchmarkFailed, TargetError
from nephoscope.measure.targets import Peer, session
from nephoscope.measure.targets.base import IpVersion
from nephoscope.measure.targets.probe.target import Target

__all__ = ["factory", "machine"]

FOREVER = {"wait_ns": 60_000_000_000}
SOON_NS = 300_000_000


def test_it_starts_at_the_moment_it_is_told(factory: Callable[[], Target]) -> None:
    async def work(target: Target) -> Any:
        running = await target.start("null", {"value": 4.0}, 30)
        at_ns = (await running.ready(20))["wall_ns"] + SOON_NS
        await running.go(at_ns)
        assert not running.ended()
        return at_ns, await running.result(60)

    at_ns, trial = using(factory, work)
    assert trial.failure is None
    assert trial.samples[0].value == 4.0
    assert trial.done.started_wall_ns >= at_ns


def test_what_cannot_be_prepared_says_why(factory: Callable[[], Target]) -> None:
    async def work(target: Target) -> None:
        running = await target.start("null", {"samples": -1}, 30)
        with pytest.raises(BenchmarkFailed, match="from 0 to 1000000") as caught:
            await running.ready(20)
        assert caught.value.name == "usage"
        again = await target.start("null", {"samples": -1}, 30)
        assert (await again.result(60)).failure.name == "usage"

    using(factory, work)


def test_a_load_runs_until_it_is_told_to_stop(machine: Callable[[], Target]) -> None:
    async def work(target: Target) -> Any:
        running = await target.start("load.cpu", {"duration_ns": 0, "intensity_ratio": 0.1}, 60)
        await running.ready(20)
        await running.go()
        await asyncio.sleep(0.5)
        assert not running.ended()
        await running.stop()
        return await running.result(60)

    trial = using(machine, work)
    assert trial.failure is None
    # Half a second was waited after `go`, less what a slow way took to bring it there.
    assert trial.done.elapsed_ns > 200_000_000
    assert trial.samples


@pytest.mark.parametrize("version", [None, 4, 6])
def test_two_sides_meet_through_a_token_that_no_process_list_shows(
    machine: Callable[[], Target], version: IpVersion | None
) -> None:
    params = {"duration_ns": 200_000_000, "rate_per_s": 200.0, "wait_ns": 200_000_000}

    async def work(target: Target) -> Any:
        try:
            server = await session.serve(
                target, target, "net.rtt", {}, deadline_s=60, limit_s=60, version=version
            )
        except TargetError as error:
            # A lab and an sshd on loopback have addresses of one version.
            return str(error)
        assert server.peer is not None
        client = await session.prepare(
            target, "net.rtt", params, deadline_s=60, limit_s=60, peer=server.peer
        )
        for side in (server, client):
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{side.ready['pid']}/cmdline").read_bytes()
                assert server.peer.token.encode() not in words
        await session.go([client])
        return await client.running.result(60), await server.stop(60), server.peer

    found = using(machine, work)
    if isinstance(found, str):
        assert version == 6
        assert "no way to it over IPv6" in found
        return
    trial, served, peer = found
    assert trial.failure is None
    assert served.failure is None
    assert len(peer.token) >= 32
    assert peer.token not in repr(peer)
    assert version is None or ip_address(peer.address).version == version


def test_a_stranger_is_not_served(machine: Callable[[], Target]) -> None:
    async def work(target: Target) -> None:
        server = await target.start("net.rtt", {}, 60, serve="127.0.0.1")
        said = await server.ready(20)
        peer = Peer(said["address"], said["port"], "0" * 64)
        client = await target.start("net.rtt", {"duration_ns": 100_000_000}, 30, peer=peer)
        with pytest.raises(BenchmarkFailed):
            await client.ready(20)
        await server.stop()
        await server.result(60)

    using(machine, work)


def test_close_ends_what_still_runs(factory: Callable[[], Target]) -> None:
    async def work(target: Target) -> tuple[int, bool]:
        running = await target.start("null", FOREVER, 60)
        pid = int((await running.ready(20))["pid"])
        await running.go()
        # Inside a container or a guest the number is not one of this machine's.
        visible = b"null" in _words(pid)
        await target.close()
        assert running.ended()
        return pid, visible

    pid, visible = using(factory, work)
    assert not visible or gone(pid)


def test_what_is_never_told_to_go_is_ended_in_time(factory: Callable[[], Target]) -> None:
    async def work(target: Target) -> None:
        running = await target.start("null", {}, 30)
        await running.ready(20)
        trial = await running.result(0.3)
        assert trial.failure.name == "deadline"
        assert running.ended()

    using(factory, work)


def _words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
