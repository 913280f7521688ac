from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nephoscope.measure.lab import processes
from nephoscope.measure.lab.processes import matching


def test_a_process_that_begins_during_the_search_is_found() -> None:
    """As where a parent forks and ends after /proc was listed and before it is read itself."""
    word = b"a-word-that-only-this-test-knows"
    begun: list[subprocess.Popen[bytes]] = []

    def holds(process: Path) -> bool:
        if not begun:
            words = [sys.executable, "-c", "input()", word.decode()]
            begun.append(subprocess.Popen(words, stdin=subprocess.PIPE))
        return word in (process / "cmdline").read_bytes()

    try:
        assert matching(holds) == [begun[0].pid]
    finally:
        begun[0].communicate(b"\n")


def test_a_process_that_executes_a_program_is_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[Path] = []

    def holds(process: Path) -> bool:
        if process == Path("/proc/1"):
            looks.append(process)
        return len(looks) == 2 and process == looks[0]

    monkeypatch.setattr(processes, "_is_starting", lambda process: process == Path("/proc/1"))
    assert processes.matching(holds) == [1]


def test_a_process_that_has_ended_starts_no_program() -> None:
    with subprocess.Popen(["true"]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(FileNotFoundError):
            processes._is_starting(Path("/proc", str(ended.pid)))
    assert not processes._is_starting(Path("/proc/self"))


def test_a_process_that_cannot_be_read_does_not_match() -> None:
    def holds(process: Path) -> bool:
        raise ProcessLookupError(process)

    assert matching(holds) == []
