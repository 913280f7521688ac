"""Plain sockets inside namespaces, for tests of the lab that need no benchmark."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from tests.attempts import attempt

from nephoscope.measure.lab import files
from nephoscope.measure.lab.handle import Host, Lab
from nephoscope.measure.lab.network.namespaces import within
from nephoscope.measure.lab.provisioner import LABS

_Result = TypeVar("_Result")


def name() -> str:
    """A lab name that no other test has."""
    return f"t{uuid.uuid4().hex[:8]}"


def udp(host: Host) -> socket.socket:
    """A datagram socket inside a host."""
    made = within(host.netns, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    made.settimeout(30)  # for a busy machine: nothing on these paths is lost
    return made


def round_trips_s(lab: Lab, source: str, destination: str, count: int) -> list[float]:
    """Round trips of single datagrams; one that does not come back is left out."""
    with udp(lab.hosts[source]) as client, udp(lab.hosts[destination]) as server:
        address = lab.address(destination, source)
        server.bind((address, 0))
        found = []
        for number in range(count + 1):
            began = time.perf_counter()
            client.sendto(b"%d" % number, server.getsockname())
            try:
                data, peer = polled(server)
                server.sendto(data, peer)
                polled(client)
            except TimeoutError:
                continue
            found.append(time.perf_counter() - began)
        # The first asked for the hardware address.
        return found[1:]


def polled(receiver: socket.socket) -> tuple[bytes, Any]:
    """A datagram, waited for busily: how long a hypervisor takes to wake up a CPU that sleeps is no
    delay of the lab. Raises TimeoutError."""
    until = time.perf_counter() + (receiver.gettimeout() or 1.0)
    while time.perf_counter() < until:
        try:
            return receiver.recvfrom(100, socket.MSG_DONTWAIT)
        except BlockingIOError:
            continue
    raise TimeoutError


def arrived(lab: Lab, source: str, destination: str, count: int, gap_s: float = 5e-5) -> int:
    """How many of `count` datagrams arrive; paced, so that no queue overflows."""
    with udp(lab.hosts[source]) as client, udp(lab.hosts[destination]) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        server.bind((lab.address(destination, source), 0))
        address = server.getsockname()
        server.setblocking(False)
        seen = 0
        due = time.perf_counter()
        for _ in range(count):
            client.sendto(b"x" * 100, address)
            due += gap_s
            while time.perf_counter() < due:
                pass
            seen += _drain(server)
        until = time.perf_counter() + 0.5
        while time.perf_counter() < until:
            seen += _drain(server)
        return seen


def _drain(server: socket.socket) -> int:
    count = 0
    while True:
        try:
            server.recv(2048)
            count += 1
        except BlockingIOError:
            return count


def holds(
    what: str,
    measure: Callable[[], float],
    truth: float,
    bound: float,
    witness: Callable[[], str] = lambda: "",
) -> None:
    """Asserts that a measurement keeps its bound, in an attempt that nothing disturbed."""

    def once() -> tuple[str, bool]:
        value = measure()
        return f"{value:g}, {truth:g} ± {bound:g}", abs(value - truth) < bound

    attempt(what, once, witness=witness)


SLEEPER = """
import os, select, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
gap_s, late_s = float(sys.argv[2]), []
print("ready", flush=True)
while not select.select([0], [], [], 0)[0]:
    began = time.perf_counter()
    time.sleep(gap_s)
    late_s.append(time.perf_counter() - began - gap_s)
print(sorted(late_s)[len(late_s) // 2])
"""
"""Sleeps on one CPU until its input ends, and prints by how much the median sleep ended late."""


@contextmanager
def sleepers(gap_s: float) -> Iterator[list[float]]:
    """Fills a list with the median lateness of sleeps on each CPU while the block lasted."""
    words = [sys.executable, "-S", "-E", "-c", SLEEPER]
    running = [
        subprocess.Popen(
            [*words, str(cpu), str(gap_s)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for cpu in sorted(os.sched_getaffinity(0))
    ]  # fmt: skip
    late_s: list[float] = []
    try:
        for one in running:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"
        yield late_s
    finally:
        late_s += [float(one.communicate()[0]) for one in running]


def delay_holds(what: str, measure: Callable[[], float], truth_s: float) -> None:
    """`holds` for a round trip: half a millisecond is promised each way.

    A hypervisor that is slow to run a CPU that slept delays the delay line too, and accounts only a
    part of that as stolen time. Sleeps as long as a packet is delayed show it meanwhile.
    """
    late_s: list[float] = []

    def beside_sleepers() -> float:
        with sleepers(max(truth_s / 2, 0.005)) as seen_s:
            value = measure()
        late_s[:] = seen_s
        return value

    def slow_to_wake() -> str:
        # At rest 0.11 to 0.19 ms. A way has two wake-ups: of that many is what is promised for it.
        worst_s = max(late_s)
        return f"sleeps ended {1e3 * worst_s:.2f} ms late" if worst_s > 0.25e-3 else ""

    holds(what, beside_sleepers, truth_s, 0.001, slow_to_wake)


def in_lab(values: Mapping[str, Any], work: Callable[[Lab], _Result]) -> _Result:
    """The result of `work` on a lab that is up meanwhile."""
    topology = files.from_values({"version": 1, "name": name(), **values})

    async def whole() -> _Result:
        lab = await LABS.create(topology, say=lambda line: None)
        try:
            return await asyncio.to_thread(work, lab)
        finally:
            await LABS.remove(lab.name)
            assert LABS.remains(lab.name) == []

    return asyncio.run(whole())
