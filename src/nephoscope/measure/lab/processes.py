"""Finds processes by what they hold, those that begin during the search included."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

# Each look shows what began during the look before; a machine that never rests must not hold us up.
_MAX_SCANS = 10
_START_S = 0.01
"""Pause for processes that execute a new program just now, and may wait for a CPU meanwhile."""


def matching(holds: Callable[[Path], bool]) -> list[int]:
    """Returns the ids of processes for whose folder in /proc a test holds, without our own.

    One look is not enough: a process that starts another one and ends before its turn is gone when
    it is read, and the other one was not yet listed. A process that ends while it is tested does
    not match.
    """
    ids: list[int] = []
    seen = {os.getpid()}
    for _ in range(_MAX_SCANS):
        began = {int(name) for name in os.listdir("/proc") if name.isdigit()} - seen
        if not began:
            break
        seen |= began
        has_starting = False
        for pid in sorted(began):
            with contextlib.suppress(OSError):
                process = Path("/proc", str(pid))
                # First: it may be ready by the time that the test has not held.
                starting = _is_starting(process)
                if holds(process):
                    ids.append(pid)
                elif starting:
                    seen.discard(pid)
                    has_starting = True
        if has_starting:
            time.sleep(_START_S)
    return ids


def _is_starting(process: Path) -> bool:
    """Returns whether a process executes a new program just now, whose arguments are not yet to be
    read.

    Threads of the kernel and processes that have ended have no arguments either, but no program.
    """
    return not (process / "cmdline").read_bytes() and bool((process / "exe").readlink().name)
