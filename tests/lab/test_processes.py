from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from nephoscope.lab.processes import matching


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


def test_a_process_that_cannot_be_read_does_not_match() -> None:
    def holds(process: Path) -> bool:
        raise ProcessLookupError(process)

    assert matching(holds) == []
