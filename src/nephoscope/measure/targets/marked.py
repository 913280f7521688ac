"""Processes that have a mark in their environment: they, and what they start, are found by it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from nephoscope.core import leases

_LIMIT_S = 5.0
"""Processes that start others faster than they are ended are given up after this time."""
_EXECUTING_S = 0.01
"""A process that is executing a program has no environment for a moment."""

_own = {"mark": ""}


def set_mark(mark: str) -> None:
    """Marks what this process starts from now on; empty for no mark."""
    _own["mark"] = mark


def environment() -> Mapping[str, str]:
    """Returns the variable with the mark; empty without one."""
    return {leases.MARK: _own["mark"]} if _own["mark"] else {}


def end_own() -> None:
    """Ends what bears the mark of this process, when this process ends."""
    if _own["mark"]:
        end(_own["mark"])


def end(mark: str, patience_s: float = 0.0) -> int:
    """Kills all processes with a mark; returns how many.

    patience_s: time in which they may end by themselves.
    """
    began_s = time.monotonic()
    while time.monotonic() < began_s + patience_s and any(_bearing(mark)):
        time.sleep(0.05)
    ended, until_s, nothing_seen = set[int](), time.monotonic() + _LIMIT_S, 0
    while nothing_seen < 2 and time.monotonic() < until_s:
        killed = {pid for pid in _bearing(mark) if _kill(pid, mark)}
        ended |= killed
        nothing_seen = 0 if killed else nothing_seen + 1
        time.sleep(_EXECUTING_S)
    return len(ended)


def _bearing(mark: str) -> Iterator[int]:
    for entry in os.listdir("/proc"):
        if entry.isdigit() and _bears(int(entry), mark):
            yield int(entry)


def _bears(pid: int, mark: str) -> bool:
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False  # It has ended, or it is another user's.
    return f"{leases.MARK}={mark}".encode() in variables


def _kill(pid: int, mark: str) -> bool:
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            # The number may belong to another process since the search.
            if _bears(pid, mark):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                return True
        finally:
            os.close(handle)
    return False
