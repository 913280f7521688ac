"""http.serve as a load: its counts and times are those of the requests that the test sent."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from channel import Controlled, controlled
from tests.attempts import attempt
from trials import real_time

MS = 1_000_000


@contextmanager
def running(**params: Any) -> Iterator[tuple[Controlled, tuple[str, int]]]:
    """The server as a load until it is told to stop, and where it listens."""
    with controlled("run", "http.serve", {"duration_ns": 0, **params}) as probe:
        ready = probe.ready()
        probe.say("go")
        yield probe, (ready["address"], ready["port"])


class Client:
    """A connection that counts what went each way."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=60)
        self.sent = self.received = 0

    def ask(self, text: str) -> None:
        self.socket.sendall(text.encode())
        self.sent += len(text)

    def take(self, length: int) -> str:
        """The answer whose body has this length."""
        data = b""
        while b"\r\n\r\n" not in data or len(data.partition(b"\r\n\r\n")[2]) < length:
            piece = self.socket.recv(65536)
            if not piece:
                break
            data += piece
        self.received += len(data)
        return data.decode()

    def close(self) -> None:
        self.received += len(b"".join(iter(lambda: self.socket.recv(65536), b"")))
        self.socket.close()


def get(path: str) -> str:
    return f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"


COUNTS = (
    "requests_count",
    "answered_count",
    "accepted_count",
    "refused_count",
    "open_max_count",
    "received_bytes",
    "sent_bytes",
    "errors_count",
    "answered_per_s",
    "served",
)


@pytest.mark.together
@pytest.mark.truth("http.serve", *COUNTS)
def test_the_counts_are_those_of_the_clients() -> None:
    with running(connections=3, records=100) as (probe, address):
        clients = [Client(address) for _ in range(3)]
        for number, client in enumerate(clients):
            for _ in range(4 + number):
                client.ask(get("/bytes/1000"))
                assert client.take(1000).startswith("HTTP/1.1 200 ")
        clients[0].ask(get("/sum"))
        assert clients[0].take(5).endswith("5050\n")
        clients[0].ask(get("/nothing"))
        assert clients[0].take(0).startswith("HTTP/1.1 404 ")
        for _ in range(2):
            clients.append(Client(address))
            assert clients[-1].take(0).startswith("HTTP/1.1 503 ")
        clients[1].ask("NONSENSE\r\n\r\n")
        assert clients[1].take(0).startswith("HTTP/1.1 400 ")
        # Long beside what the program does between its last answer and its last line.
        time.sleep(0.3)
        probe.say("stop")
        trial = probe.trial()
    for client in clients:
        client.close()
    assert trial.by("requests_count", "kind") == {"body": 15, "sum": 1}
    assert trial.by("answered_count", "kind") == {"body": 15, "sum": 1}
    errors = {cause: n for cause, n in trial.by("errors_count", "cause").items() if n}
    assert errors == {"malformed": 1, "unknown_path": 1}
    assert trial.one("accepted_count") == 5
    assert trial.one("refused_count") == 2
    assert trial.one("open_max_count") == 3
    assert trial.one("received_bytes") == sum(client.sent for client in clients)
    assert trial.one("sent_bytes") == sum(client.received for client in clients)
    assert trial.one("answered_per_s") * trial.done["elapsed_ns"] / 1e9 == pytest.approx(
        16, rel=0.05
    )
    served = trial.document("served")
    assert (served["accepted"], served["refused"], served["open_max"]) == (5, 2, 3)
    assert served["requests"] == {**dict.fromkeys(served["requests"], 0), "body": 15, "sum": 1}


@pytest.mark.truth("http.serve", "wait_ns", "late_ns", "used_cpus")
def test_waits_lateness_and_cpu_time_are_those_that_were_planted() -> None:
    """Three services of 30 ms at once, of which two wait; 150 ms of CPU time; then a service whose
    end finds the server stopped."""
    service_ms, cpu_ms, stopped_ms = 30, 150, 120

    def measure() -> tuple[str, bool]:
        with real_time(inherited=True), running() as (probe, address):
            clients = [Client(address) for _ in range(3)]
            for client in clients:
                client.ask(get(f"/service/{service_ms * MS}?bytes=1"))
            for client in clients:
                client.take(1)
            clients[0].ask(get(f"/cpu/{cpu_ms * MS}?bytes=1"))
            clients[0].take(1)
            began = time.monotonic()
            clients[0].ask(get(f"/service/{service_ms * MS}?bytes=1"))
            time.sleep(0.01)
            probe.stop_for(stopped_ms / 1e3)
            late_ms = 1e3 * (time.monotonic() - began) - service_ms
            clients[0].take(1)
            probe.say("stop")
            trial = probe.trial()
            for client in clients:
                client.socket.close()
        waits, wait_ns = trial.histogram("wait_ns")
        lates, late_ns = trial.histogram("late_ns")
        elapsed_ms = trial.done["elapsed_ns"] / MS
        off = {
            "waits": waits * wait_ns / MS - (0 + 1 + 2) * service_ms,
            "lateness": lates * late_ns / MS - late_ms,
            "CPU time": trial.one("used_cpus") * elapsed_ms - cpu_ms,
            "CPU time by the kernel": 1e3 * probe.cpu_s - cpu_ms,
        }
        # Waits are less by what lies between the arrivals. Each of five answers is late by a
        # wake-up. Starting and serving takes some CPU time.
        text = ", ".join(f"{name} {ms:+.2f} ms" for name, ms in off.items())
        return text, all(-8 <= ms <= 25 for ms in off.values())

    attempt("planted waits", measure)
