"""The probe's control channel in the hands of a test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from trials import Trial, probe_path
from truth_marks import READING

TOKEN = "0123456789abcdef0123456789abcdef"


class Controlled:
    """A probe that obeys its standard input; `before` are words ahead of its own.

    cpu_s: CPU time that the kernel accounts to it, once it has ended.
    """

    cpu_s: float

    def __init__(
        self,
        verb: str,
        benchmark: str,
        params: dict[str, Any] | None = None,
        *,
        more: Sequence[str] = (),
        before: Sequence[str] = (),
        deadline_s: int = 60,
    ) -> None:
        READING.benchmarks.add(benchmark)
        words = [*before, probe_path(), verb, benchmark, "--params", json.dumps(params or {})]
        words += ["--deadline", str(deadline_s), "--with-parent", "--control", *more]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hang_up(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def ready(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = json.loads(self.process.stdout.readline())
        assert "ready" in line, line
        found: dict[str, Any] = line["ready"]
        return found

    def rest(self) -> str:
        """What it says to its end; its standard input stays open meanwhile."""
        assert self.process.stdout is not None
        text = self.process.stdout.read()
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_s = usage.ru_utime + usage.ru_stime
        return text

    def stop_for(self, seconds: float) -> float:
        """Stops the process and lets it go on; returns for how long it stood (s)."""
        self.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)
        return time.monotonic() - began

    def trial(self) -> Trial:
        """The trial that it ends with, which has to go well."""
        text = self.rest()
        assert self.process.returncode == 0, text[-600:]
        return Trial(text)

    def error(self) -> tuple[int, dict[str, str]]:
        """Exit code and error of one that has to fail."""
        lines = self.rest().splitlines()
        error: dict[str, str] = json.loads(lines[-1])["error"]
        return self.process.returncode, error

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()
        self.process.wait()


@contextmanager
def controlled(verb: str, benchmark: str, *args: Any, **more: Any) -> Iterator[Controlled]:
    """A probe that is gone afterwards."""
    probe = Controlled(verb, benchmark, *args, **more)
    try:
        yield probe
    finally:
        probe.close()


def peer_line(ready: dict[str, Any], token: str = TOKEN) -> str:
    """The line that tells of the server that said `ready`."""
    return "peer " + json.dumps(
        {"address": ready["address"], "port": ready["port"], "token": token}
    )


def soon_ns(ahead_s: float = 0.1) -> int:
    """A moment on the wall clock."""
    return time.time_ns() + int(ahead_s * 1e9)
