"""Questions about several generators of one load, held to what the server counted."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.conftest import run_inside
from tests.questions.conftest import Answer, Asking
from tests.questions.test_load import Server, _Handler
from typing_extensions import override


class _CountingHandler(_Handler):
    """Answers at once; the server counts the requests."""

    server: CountingServer

    @override
    def do_GET(self) -> None:
        with self.server.turn:
            self.server.requests += 1
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(b"ok")


class CountingServer(Server):
    """Counts the requests that it has read."""

    def __init__(self) -> None:
        self.requests = 0
        super().__init__(0.0)
        self.RequestHandlerClass = _CountingHandler


@contextlib.contextmanager
def counting() -> Iterator[CountingServer]:
    server = CountingServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()


def generators_of(pid: int) -> list[int]:
    """The process ids of the generators that a process has started, in the order of their start."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            words = (path / "cmdline").read_bytes().split(b"\0")
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and b"http.load" in words:
                found.append(int(path.name))
    return sorted(found)


def asked(command: str) -> Answer:
    """Asks where a busy machine may send late: trials that do not count are counted all the same,
    and end with exit code 3."""
    done = run_inside(command.split()[1:])
    assert done.code in (0, 3), done.err
    return Answer(command, done.out, done.err, done.code)


def shared_of(ask: Asking, answer: Answer) -> dict[str, Any]:
    """The counts of the generators of the run, as its document has them."""
    run = answer.says(r"Run (\S+-load-\S+)")[1]
    done = run_inside(["show", run, "--json"])
    (shared,) = Answer("", done.out, done.err, done.code).json()["load"]["shared"]
    return dict(shared)


@pytest.mark.alone
def test_do_two_generators_send_what_one_would(ask: Asking) -> None:
    """Two generators share 200 requests per second: did my server get exactly these?"""
    with counting() as server:
        answer = asked(
            f"nephoscope load http://127.0.0.1:{server.port}/ -r 200 -c 7 --generators 2 -d 2s "
            "--trials 2 --seed 3"
        )
        seen = server.requests
    # Of 1 s each, with 0.1 s of warm-up: 2 x 200 requests, dealt out one by one.
    answer.says(
        r"400 requests due on 2 generators = 400 answered \+ 0 failed \+ 0 lost, as many as the "
        r"schedule has\."
    )
    answer.says(r"They began within \S+ [nµm]s of each other")
    answer.says(r"local-1 200 200 0 0 ")
    answer.says(r"all 400 400 0 0 ")
    assert seen == 400
    shared = shared_of(ask, answer)
    assert shared["is_conserved"]
    assert [each["due_count"] for each in shared["generators"]] == [200, 200]


@pytest.mark.alone
def test_what_did_the_generator_send_that_died(ask: Asking) -> None:
    """One of my generators is killed in the middle: which one, and where are its requests?"""
    killed = threading.Event()

    def kill_the_second() -> None:
        for _ in range(2000):
            time.sleep(0.01)
            running = generators_of(os.getpid())
            if len(running) == 2 and server.requests > 60:
                os.kill(running[1], signal.SIGKILL)
                killed.set()
                return

    with counting() as server:
        thread = threading.Thread(target=kill_the_second, daemon=True)
        thread.start()
        answer = asked(
            f"nephoscope load http://127.0.0.1:{server.port}/ -r 200 -c 4 --generators 2 -d 3s "
            "--trials 3 --seed 3"
        )
        thread.join()
        seen = server.requests
    assert killed.is_set()
    answer.says(r"local-[12] failed in 1 trial of 3, and \d+ requests with it: .*SIGKILL")
    shared = shared_of(ask, answer)
    assert shared["is_conserved"]
    assert shared["due_count"] == shared["scheduled_count"] == 3 * 200
    assert shared["excluded_trials"] >= 1
    (dead,) = (each for each in shared["generators"] if each["failed_trials"])
    # It had reported what it did up to a tenth of a second before its end.
    assert 0 < dead["completed_count"] < dead["due_count"]
    lost = shared["lost_count"]
    assert lost == dead["lost_count"] > 0
    known = shared["completed_count"] + shared["failed_count"]
    assert known <= seen <= known + lost
