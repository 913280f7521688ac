"""http.load against a server that keeps its own times: the latency follows from the schedule."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable

from tests.attempts import attempt
from trials import refused, run

RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
END = b"\r\n\r\n"


class Server:
    """Answers one request after the other; `wait_s` gives the time that each request takes.

    times_s: how long each request took here, from the end of its reading to the end of the writing.
    """

    def __init__(self, wait_s: Callable[[int], float]) -> None:
        self.times_s: list[float] = []
        self._wait_s = wait_s
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        unread = b""
        while data := connection.recv(4096):
            unread += data
            while END in unread:
                began_s = time.monotonic()
                _, _, unread = unread.partition(END)
                time.sleep(self._wait_s(len(self.times_s)))
                connection.sendall(RESPONSE)
                self.times_s.append(time.monotonic() - began_s)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


def mean_response_s(arrivals_s: list[float], services_s: list[float]) -> float:
    """Mean response time of one server in order of arrival (Lindley's recursion, 1952)."""
    end_s, total_s = 0.0, 0.0
    for arrival_s, service_s in zip(arrivals_s, services_s, strict=True):
        end_s = max(end_s, arrival_s) + service_s
        total_s += end_s - arrival_s
    return total_s / len(arrivals_s)


def test_latency_counts_from_the_schedule_through_a_stall() -> None:
    # 200 requests per second, 1 ms each; one takes 200 ms, and 40 others wait behind it.
    arrivals_s = [index / 200 for index in range(120)]
    load = {"arrivals": "constant", "rate_per_s": 200.0, "connections": 1, "warmup_ns": 0}

    def once() -> tuple[str, bool]:
        server = Server(lambda number: 0.2 if number == 30 else 0.001)
        try:
            trial = run("http.load", {**load, "url": server.url, "duration_ns": 600_000_000})
        finally:
            server.close()
        sent = trial.one("sent_count")
        assert sent == trial.one("completed_count") == len(server.times_s)
        count, latency_ns = trial.histogram("latency_ns")
        assert count == 120
        if sent < count:
            return f"{sent:.0f} of {count} requests found a free connection", False
        wanted_s = mean_response_s(arrivals_s, server.times_s)
        own_s = sum(server.times_s) / 120
        _, service_ns = trial.histogram("service_time_ns")
        # A round trip on loopback, twice a wake-up, is no part of the server's own times; behind
        # the stall it adds up.
        latency_s, service_s = latency_ns / 1e9, service_ns / 1e9
        text = (
            f"latency {latency_s:.4f} of {wanted_s:.4f} s, service {service_s:.5f} of {own_s:.5f} s"
        )
        held = 0.99 * wanted_s <= latency_s <= 1.02 * wanted_s + 0.003
        return text, held and 0.99 * own_s <= service_s <= own_s + 0.0005

    attempt("latency behind a stall", once)


def test_one_connection_and_a_known_service_time_give_the_rate() -> None:
    def once() -> tuple[str, bool]:
        server = Server(lambda _: 0.005)
        try:
            trial = run("http.load", {"url": server.url, "connections": 1, "warmup_ns": 0})
        finally:
            server.close()
        own_s = sum(server.times_s) / len(server.times_s)
        rate = trial.one("requests_per_s")
        count, latency_ns = trial.histogram("latency_ns")
        # One request at a time: rate and mean latency are each other's inverse (Little's law).
        assert abs(count * latency_ns / 1e9 - 1) < 0.02
        return f"{rate:.1f} per second at {own_s:.6f} s", 0.93 / own_s <= rate <= 1 / own_s + 1

    attempt("rate of one connection", once)


def test_what_cannot_be_loaded_is_one_sentence() -> None:
    free = socket.create_server(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    for params, failure in (
        ({}, (2, "usage")),
        ({"url": "ftp://127.0.0.1/"}, (2, "usage")),
        ({"url": "http://192.0.2.1/"}, (2, "not_authorised")),
        ({"url": f"http://127.0.0.1:{port}/"}, (3, "no_server")),
        ({"url": "http://127.0.0.1/", "method": "G T"}, (2, "usage")),
        ({"url": "http://127.0.0.1/", "headers": ["x"]}, (2, "usage")),
        ({"url": "http://127.0.0.1/", "expected_body_sha256": "x"}, (2, "usage")),
    ):
        assert refused("http.load", params) == failure, params
    server = Server(lambda _: 0.0)
    try:
        wrong = {"url": server.url, "expected_body_text": "no such text", "interval_ns": 10**9}
        assert refused("http.load", {**wrong, "connections": 1, "duration_ns": 10**7}) == (
            3,
            "no_valid_response",
        )
        for arrivals in itertools.chain(({"arrivals": "file"}, {"connections": 1, "threads": 2})):
            assert refused("http.load", {"url": server.url, **arrivals}) == (2, "usage")
        many = {"url": server.url, "connections": 1_000_000}
        assert refused("http.load", many) == (4, "too_few_descriptors")
    finally:
        server.close()
