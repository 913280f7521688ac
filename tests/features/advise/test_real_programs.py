"""Real programs, observed for some seconds, are told apart by their dominant resource."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.attempts import attempt
from tests.tools import fixture_needs, located, needs

from nephoscope.features.advise import observe
from nephoscope.features.advise.telemetry import Telemetry

SECONDS = 8.0
"""The advice observes for a minute; the shares of these steady programs show within seconds."""

pytestmark = [pytest.mark.slow, pytest.mark.alone]


@dataclass
class Redis:
    pid: int
    port: int


@pytest.fixture
@fixture_needs("redis-server")
def redis(tmp_path: Path) -> Iterator[Redis]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(tmp_path)]
    server = subprocess.Popen([located("redis-server"), *words], stdout=subprocess.DEVNULL)
    while True:
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port)).close()
            break
        assert server.poll() is None
        time.sleep(0.05)
    yield Redis(server.pid, port)
    server.kill()
    server.wait()


def classified(name: str, expected: str, observed: Callable[[], Telemetry]) -> Telemetry:
    """Observes until the resource is the expected one, again only on a disturbed machine."""
    seen: list[Telemetry] = []

    def measure() -> tuple[str, bool]:
        seen.append(observed())
        return seen[-1].sentence, seen[-1].dominant == expected

    attempt(name, measure, contends=True)
    return seen[-1]


def test_a_compression_uses_the_cpu() -> None:
    line = "sh -c 'exec gzip -9 < /dev/zero'"
    telemetry = classified("compression", "cpu", lambda: observe.of_command(line, SECONDS))
    assert telemetry.share("cpu").value > 0.9


def test_direct_writes_use_the_disk(tmp_path: Path) -> None:
    file = tmp_path / "written"
    line = f"dd if=/dev/zero of={file} bs=64k count=2000000 oflag=direct,dsync"
    telemetry = classified("dd", "disk", lambda: observe.of_command(line, SECONDS))
    assert telemetry.storage_bytes_per_s is not None
    assert telemetry.storage_bytes_per_s > 1e5
    file.unlink(missing_ok=True)


@needs("redis-benchmark")
def test_redis_under_load_uses_the_cpu(redis: Redis) -> None:
    """On one host its network is the loopback, which is work of the CPU."""
    words = ["-p", str(redis.port), "-l", "-q", "-c", "20", "-P", "16", "-t", "set"]
    client = subprocess.Popen(["redis-benchmark", *words], stdout=subprocess.DEVNULL)
    try:
        telemetry = classified("Redis", "cpu", lambda: observe.of_process(redis.pid, SECONDS))
    finally:
        client.kill()
        client.wait()
    assert telemetry.loopback_bits_per_s


def test_a_server_without_requests_is_idle(redis: Redis) -> None:
    classified("idle Redis", "none", lambda: observe.of_process(redis.pid, SECONDS))


def test_a_script_of_short_processes_uses_the_cpu() -> None:
    script = "while :; do head -c 2000000 /dev/urandom | gzip > /dev/null; done"
    line = f"sh -c '{script}'"
    classified("script", "cpu", lambda: observe.of_command(line, SECONDS))
