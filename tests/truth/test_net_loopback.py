"""net.loopback against counters, a rate limit and a lowered interface in a namespace of its own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.attempts import attempt
from tests.tools import fixture_needs
from trials import command, needs_root, run, start

DURATION_NS = 200_000_000


class Namespace:
    """A network namespace with nothing in it but its own loopback."""

    def __init__(self) -> None:
        self.name = f"nephoscope-test-{os.getpid()}"
        self.before = ["ip", "netns", "exec", self.name]
        subprocess.run(["ip", "netns", "add", self.name], check=True)

    def call(self, *words: str) -> str:
        done = subprocess.run([*self.before, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def received_bytes(self) -> int:
        (link,) = json.loads(self.call("ip", "-json", "-stats", "link", "show", "lo"))
        return int(link["stats64"]["rx"]["bytes"])

    def close(self) -> None:
        subprocess.run(["ip", "netns", "delete", self.name], check=True)


@pytest.fixture
@fixture_needs("ip", "tc")
def namespace() -> Iterator[Namespace]:
    space = Namespace()
    try:
        yield space
    finally:
        space.close()


@pytest.mark.truth("net.loopback", "loopback_round_trip_ns", "loopback_round_trips_per_s")
@pytest.mark.parametrize("message_bytes", [1, 64, 100_000])
def test_messages_go_one_at_a_time(message_bytes: int) -> None:
    params = {"part": ["round_trip"], "duration_ns": DURATION_NS, "message_bytes": message_bytes}
    trial = run("net.loopback", params)
    count, mean_ns = trial.histogram("loopback_round_trip_ns")
    rate = trial.one("loopback_round_trips_per_s")
    # Each message starts when the one before it is back; the histogram rounds to 3 digits.
    assert rate * mean_ns / 1e9 == pytest.approx(1, rel=0.01)
    # The counted time ends with the first message after the duration.
    assert count / rate >= 0.999999 * DURATION_NS / 1e9
    assert trial.metrics == {"loopback_round_trip_ns", "loopback_round_trips_per_s"}


@needs_root
@pytest.mark.truth("net.loopback", "loopback_bytes_per_s")
@pytest.mark.parametrize("streams", [1, 3])
def test_the_interface_counts_what_was_received(namespace: Namespace, streams: int) -> None:
    namespace.call("ip", "link", "set", "lo", "up")
    params = {"part": ["throughput"], "duration_ns": DURATION_NS, "streams": streams}

    def measure() -> tuple[str, bool]:
        before = namespace.received_bytes()
        trial = run("net.loopback", params, before=namespace.before)
        counter = namespace.received_bytes() - before
        counted = trial.one("loopback_bytes_per_s") * DURATION_NS / 1e9
        # The counter has the warm-up too, a tenth of the time at any rate up to three times that
        # of the rest, and 66 bytes of headers on packets of up to 64 KiB, and acknowledgements.
        return f"counter {counter}, counted {counted:.0f}", 1.0 <= counter / counted <= 1.35

    attempt(f"{streams} streams", measure)


@needs_root
@pytest.mark.truth("net.loopback", "loopback_bytes_per_s")
@pytest.mark.parametrize("streams", [1, 4])
def test_a_rate_limit_is_reported(namespace: Namespace, streams: int) -> None:
    namespace.call("ip", "link", "set", "lo", "up", "mtu", "1500")
    rate_bits = 200_000_000
    limit = ["rate", f"{rate_bits}bit", "burst", "16kb", "cburst", "16kb"]
    namespace.call("tc", "qdisc", "add", "dev", "lo", "root", "handle", "1:", "htb", "default", "1")
    namespace.call(
        "tc", "class", "add", "dev", "lo", "parent", "1:", "classid", "1:1", "htb", *limit
    )
    params = {"part": ["throughput"], "duration_ns": 1_000_000_000, "streams": streams}
    # Ethernet's 14, IP's 20 and TCP's 32 bytes around 1448 of payload; acknowledgements of 66 bytes
    # take their part of the same limit, one for two segments at most.
    high = rate_bits / 8 * 1448 / 1514
    low = rate_bits / 8 * 1448 / (1514 + 33)

    def measure() -> tuple[str, bool]:
        seen = run("net.loopback", params, before=namespace.before).one("loopback_bytes_per_s")
        # 3 % for what queues at both edges: half a second of one stream's queue would be 1 %.
        return f"{seen:.0f} of {low:.0f} to {high:.0f}", 0.97 * low <= seen <= 1.03 * high

    attempt(f"{streams} streams", measure)


@pytest.mark.together
@needs_root
def test_a_lowered_interface_is_named(namespace: Namespace) -> None:
    words = [*namespace.before, *command("net.loopback", {})]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 4
    assert json.loads(done.stdout)["error"]["name"] == "no_loopback"


@pytest.mark.together
@pytest.mark.parametrize("pin", ["none", "same", "apart"])
def test_every_placement_measures_both_parts(pin: str) -> None:
    trial = run("net.loopback", {"duration_ns": 50_000_000, "pin": pin})
    assert "loopback_bytes_per_s" in trial.metrics
    assert "loopback_round_trip_ns" in trial.metrics


@pytest.mark.together
@pytest.mark.parametrize("part", ["throughput", "round_trip"])
def test_a_signal_ends_the_trial(part: str) -> None:
    params: dict[str, Any] = {"part": [part], "duration_ns": 50_000_000_000, "streams": 2}
    with start("net.loopback", params) as process:
        time.sleep(0.5)
        process.terminate()
        told = time.monotonic()
        out, _ = process.communicate(timeout=120)
    # The probe's own bound is one second of grace; the rest is for a busy machine.
    assert time.monotonic() - told < 3
    assert process.returncode == 130
    assert '"cancelled"' in out


def tcp_sockets(pid: int) -> list[list[str]]:
    """The rows of the kernel's table of TCP that belong to a process."""
    inodes = set()
    with contextlib.suppress(OSError):  # it ended, or closed one meanwhile
        for link in Path(f"/proc/{pid}/fd").iterdir():
            target = os.readlink(link)
            if target.startswith("socket:["):
                inodes.add(target[len("socket:[") : -1])
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [row for row in rows if row[9] in inodes]


def test_nothing_listens_beyond_loopback() -> None:
    params = {"duration_ns": 500_000_000, "streams": 4, "part": ["throughput"]}
    with start("net.loopback", params) as process:
        mine: list[list[str]] = []
        while len(mine) != 8 and process.poll() is None:
            time.sleep(0.05)
            mine = tcp_sockets(process.pid)
        process.communicate(timeout=120)
    assert len(mine) == 8
    # The kernel writes addresses as hexadecimal words of the machine's byte order.
    assert {row[1].split(":")[0] for row in mine} <= {"0100007F", "7F000001"}
    assert "0A" not in {row[3] for row in mine}, "a socket still listens while it measures"
