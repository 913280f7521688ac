"""Processes with a mark are ended, with all that they start; others are not."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from tests.e2e.test_children_of_commands import running

from nephoscope.core import leases
from nephoscope.measure.targets import marked

SECONDS = f"35{os.getpid()}"


@pytest.fixture
def mark() -> Iterator[str]:
    mark = secrets.token_hex(8)
    yield mark
    marked.end(mark)


def start(mark: str, script: str) -> subprocess.Popen[bytes]:
    words = ["sh", "-c", script]
    return subprocess.Popen(words, env={**os.environ, leases.MARK: mark}, start_new_session=True)


def test_processes_of_any_session_and_generation_are_ended(mark: str) -> None:
    script = f"setsid sh -c 'sleep {SECONDS} & (sleep {SECONDS} &)' & sleep {SECONDS}"
    with start(mark, script) as process, start(secrets.token_hex(8), "sleep 600") as other:
        until_s = time.monotonic() + 60
        while len(running(SECONDS)) < 3:
            assert time.monotonic() < until_s
            time.sleep(0.01)
        assert marked.end(mark) >= 4
        assert process.wait(60) == -9
        assert not running(SECONDS)
        assert other.poll() is None
        other.kill()
    assert marked.end(mark) == 0


def test_a_chain_of_processes_that_each_start_the_next_one_is_ended(mark: str) -> None:
    # Each lives for some milliseconds, in a session of its own, and leaves another.
    program = "import os, time\nwhile os.fork() == 0: os.setsid(); time.sleep(0.005)"
    with subprocess.Popen(
        [sys.executable, "-S", "-c", program], env={**os.environ, leases.MARK: mark}
    ):
        assert marked.end(mark) > 0
    assert marked.end(mark) == 0


def test_what_ends_by_itself_is_not_counted(mark: str) -> None:
    with start(mark, "sleep 0.2"):
        assert marked.end(mark, 60) == 0
