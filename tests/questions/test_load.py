"""Questions about servers under load: overload, a server that dies, capacity."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.attempts import attempt
from tests.questions.conftest import Asking
from tests.results.made import make_run

from nephoscope.core.model import Sample, Setting

SLOW_S = 0.05


class Server(ThreadingHTTPServer):
    """Serves one request at a time, each in `service_s`; `stop` ends it with its connections."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, service_s: float) -> None:
        self.service_s = service_s
        self.turn = threading.Lock()
        self.paths: set[str] = set()
        self._links: list[Any] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        self._links.append(request)
        super().process_request(request, client_address)

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
        for link in self._links:
            link.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients and `stop` end connections; that is no error of the server."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def do_GET(self) -> None:
        with self.server.turn:
            time.sleep(self.server.service_s)
            self.server.paths.add(self.path)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@contextmanager
def serving(service_s: float = 0.0) -> Iterator[Server]:
    server = Server(service_s)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()


def counts_of(document: dict[str, Any]) -> dict[str, Any]:
    (line,) = document["load"]["lines"]
    assert line["due_count"] == line["completed_count"] + sum(line["errors_count"].values())
    return dict(line)


@pytest.mark.alone
def test_what_is_my_latency_at_a_rate_that_the_server_cannot_serve(ask: Asking) -> None:
    """I offer 200 requests per second to a server that serves 20 per second: what is my p99?"""
    with serving(SLOW_S) as server:
        url = f"http://127.0.0.1:{server.port}/"
        answer = ask(f"nephoscope load {url} -d 8s --trials 8 -r 200 -c 4 --seed 1")
    served = float(answer.says(r"Overloaded: served (\S+?)/s of 200/s offered")[1])
    assert 5 <= served <= 20.5
    answer.says(r"Latency p50 ≥ \S+ m?s \[\S+, ∞\)")
    answer.says(r"Latency p99 ≥ ")
    completed, due, unsent = (
        int(text.replace(",", ""))
        for text in answer.says(
            r"(\S+) valid responses of (\S+) requests due; errors: (\S+) never sent"
        ).groups()
    )
    assert completed + unsent == due
    assert due % 200 == 0, "1 s at 200 per second, its warm-up included, for each trial that counts"
    assert due >= 6 * 200
    result = ask("nephoscope show latest --json").json()
    line = counts_of(result)
    assert (line["is_overloaded"], line["due_count"]) == (True, due)
    latencies = [
        one["estimate"] for one in result["metrics"] if one["metric"].startswith("latency_p")
    ]
    assert latencies
    for estimate in latencies:
        assert estimate["censored"]
        assert estimate["high"] is None


@pytest.mark.alone
def test_what_did_it_serve_before_it_died(ask: Asking) -> None:
    """My server dies in the middle of the test: what do I know, and does my script notice?"""

    def measure() -> tuple[str, bool]:
        with serving() as server:
            url = f"http://127.0.0.1:{server.port}/"
            threading.Timer(2.6, server.stop).start()
            answer = ask(f"nephoscope load {url} -d 6s --trials 6 -c 4", code=3)
        answer.says(r"[1-5] of [2-6] trials failed; the results are those of the others")
        answer.says(r"No server accepts a connection|sent no valid response")
        answer.says(r"Requests per second")
        answer.never_says(r"os error")
        counts_of(ask("nephoscope show latest --json").json())
        return "answered", True

    attempt("a server that dies", measure, contends=True)


@pytest.mark.alone
@pytest.mark.slow
def test_which_rate_can_i_offer_at_p90_below_60_ms(ask: Asking) -> None:
    """Which rate keeps p90 below 60 ms on my server? I have 20 seconds."""
    with serving(0.01) as server:
        began_s = time.monotonic()
        url = f"http://127.0.0.1:{server.port}/"
        answer = ask(f"nephoscope capacity --objective 'p90 < 60ms' --budget 20s {url} --json")
        assert time.monotonic() - began_s <= 22
    found = answer.json()
    assert all(one["met"] == 0 for one in found["tried"] if one["rate_per_s"] > 130), found
    capacity = found["capacity_per_s"]
    if capacity is not None:
        assert capacity["low"] <= 105
    assert any("The budget ended the search" in one for one in found["remarks"])


@pytest.mark.alone
@pytest.mark.slow
def test_what_is_known_of_the_capacity_on_a_busy_machine(ask: Asking) -> None:
    """Other programs take this machine's CPUs: how long does the search take, what do I learn?"""
    with serving(0.01) as server, burning(os.cpu_count() or 1):
        began_s = time.monotonic()
        url = f"http://127.0.0.1:{server.port}/"
        answer = ask(f"nephoscope capacity --objective 'p99 < 50ms' --budget 30s {url}")
        assert time.monotonic() - began_s <= 33
    answer.says(r"p99 < 50.0 ms holds")
    if "SENDER LATE" in answer.text and "late senders leave it open" in answer.text:
        answer.says(r"The sender was late in \d+ of \d+ trials? at \S+/s and above: the load")


@contextmanager
def burning(count: int) -> Iterator[None]:
    """Keeps CPUs busy with so many processes."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


PLAN = """version: 1
name: web
benchmarks:
  - benchmark: http.load
    params: {url: "http://127.0.0.1/", arrivals: constant, rate_per_s: 200}
repeat: {min: 8, max: 8}
"""


def at_release(overloaded: bool) -> Callable[[Setting, int, str], Sequence[Sample]]:
    """The old release answers in 5 ms; the new one leaves nine of ten requests unsent."""

    def samples(setting: Setting, round_number: int, target: str) -> Sequence[Sample]:
        waits = [5e6 * index for index in range(1, 361)] if overloaded else []
        answered = [5e6 + 1e4 * ((7 * index + round_number) % 40) for index in range(40)]
        answered = answered if overloaded else answered * 10
        unsent = {"kind": "unsent"}
        return [
            Sample("requests_per_s", len(answered) / 2 + round_number / 100),
            Sample("offered_per_s", 200.0),
            Sample("pace_ratio", 0.1 if overloaded else 1.0),
            *(Sample("latency_ns", one, 1) for one in [*answered, *waits]),
            *(Sample("unanswered_ns", one, 1) for one in waits),
            Sample("due_count", 400),
            Sample("completed_count", len(answered)),
            *([Sample("errors_count", len(waits), factors=unsent)] if waits else []),
            Sample("errors_count", len(waits), factors={"kind": "any"}),
        ]

    return samples


def test_is_the_new_release_slower_where_it_is_overloaded(ask: Asking) -> None:
    """The new release cannot serve the rate of the old one: is its latency worse?"""
    runs = [
        make_run(Path("store"), PLAN, at_release(overloaded), rounds=8, machine=name)
        for name, overloaded in (("old", False), ("new", True))
    ]
    a, b = (run.id for run in runs)
    answer = ask(f"nephoscope compare {a} {b} --metric latency_p90_ns")
    answer.says(r"B is worse than A: A is at most 5\.\d+ ms, B at least 1\.\d+ s")
    answer = ask("nephoscope history latency_p90_ns")
    answer.says(rf"latency_p90_ns of \S+ in run {b} is at least 1\.\d+ s")
    shown = ask(f"nephoscope show {b}")
    shown.says(r"Overloaded: served 20\.\S+/s of 200/s offered; 2,880 of 3,200 requests due")


def test_what_is_wrong_with_my_command(ask: Asking) -> None:
    """Six trials in two seconds, https to a plain server, a name in capitals, an umlaut."""
    answer = ask("nephoscope load http://127.0.0.1:9/ -d 2s --trials 6", code=2)
    answer.says(
        r"6 trials in 2 s are too short: a trial takes at least 0\.5 s\. .*-d 3s.*--trials 4"
    )
    with serving() as server:
        answer = ask(f"nephoscope load https://127.0.0.1:{server.port}/ -d 1s", code=3)
        answer.says(r"TLS with \S+ failed: .* \(is the address http://\?\)")
        answer.never_says(r"os error")
        ask(f"nephoscope load http://LOCALHOST.:{server.port}/ü?q=日 -d 1s")
        assert server.paths == {"/%C3%BC?q=%E6%97%A5"}
