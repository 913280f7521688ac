"""net.query beside qstat, on a real game server."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.attempts import attempt
from tests.tools import located, needs
from trials import run

pytestmark = pytest.mark.slow

NAME, MAP, PLACES = "Planted name", "oa_dm1", 5
MS = 1_000_000
PATIENCE_S = 120.0


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


@contextmanager
def openarena(home: Path, port: int) -> Iterator[None]:
    """A server on loopback that announces itself to nobody."""
    settings = {
        "dedicated": "1",
        "net_ip": "127.0.0.1",
        "net_port": str(port),
        "sv_hostname": NAME,
        "sv_maxclients": str(PLACES),
    }
    words = [word for name, value in settings.items() for word in ("+set", name, value)]
    log = home / "log"
    with log.open("w") as output:
        server = subprocess.Popen(
            [located("openarena-server"), *words, "+map", MAP],
            env={**os.environ, "HOME": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=home,
        )
    try:
        deadline = time.monotonic() + PATIENCE_S
        # Its last word before it serves the map.
        while "AAS initialized" not in log.read_text(errors="replace"):
            assert server.poll() is None, log.read_text(errors="replace")[-500:]
            assert time.monotonic() < deadline, "the server does not start"
            time.sleep(0.1)
        yield
    finally:
        server.kill()
        server.wait()


def by_qstat(port: int) -> list[str]:
    """Type, address, name, map, places, players, milliseconds, retries."""
    words = [located("quakestat"), "-raw", "|", "-q3s", f"127.0.0.1:{port}"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return done.stdout.strip().split("|")


@needs("openarena-server", "quakestat")
def test_a_real_server_says_the_same_to_qstat(tmp_path: Path) -> None:
    port = free_port()
    params = {"protocol": "quake3", "host": "127.0.0.1", "port": port, "rate_per_s": 2}

    def once() -> tuple[str, bool]:
        told = by_qstat(port)
        trial = run("net.query", {**params, "duration_ns": 2000 * MS, "wait_ns": 1000 * MS})
        facts = trial.document("game_server")
        assert told[2:6] == [facts["name"], facts["map"], str(facts["places"]), "0"]
        assert (facts["name"], facts["map"], facts["places"]) == (NAME, MAP, PLACES)
        assert facts["players"] == 0
        assert facts["folder"] == "baseoa"
        # Fewer than the ten that it answers at once.
        assert trial.one("returned_count") == trial.one("sent_count") == 4
        mean_ms, qstat_ms = trial.one("rtt_sent_mean_ns") / MS, int(told[6])
        # qstat counts whole milliseconds. The server answers at once, or after a frame of 50 ms.
        return f"{mean_ms:.2f} ms, {qstat_ms} ms by qstat", max(mean_ms, qstat_ms) <= 50

    with openarena(tmp_path, port):
        attempt("answers of a game server", once)
