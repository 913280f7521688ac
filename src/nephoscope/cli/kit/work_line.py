"""The line of a terminal while a command reads or computes for more than two seconds.

Commands that measure have their own (live.py), because nothing may run beside a trial.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator

from nephoscope.cli.kit import output
from nephoscope.core import counting, units

SILENT_S = 2.0
"""Time after which a person wants to know that something goes on."""
_EVERY_S = 0.25
_ERASE = "\r\x1b[2K"


class WorkLine:
    """Draws what is done, how far it is and the time left; erased before anything is printed."""

    def __init__(self) -> None:
        self._started_s = self._began_s = time.monotonic()
        self._what, self._done, self._total = "", 0, 0
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._is_drawn = False
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def start(self) -> None:
        """Begins to wait; the first line is drawn after SILENT_S."""
        counting.listen(self.count)
        self._thread.start()

    def stop(self) -> None:
        """Erases the line for good."""
        counting.ignore(self.count)
        self._ended.set()
        self.erase()

    def count(self, what: str, done: int, total: int) -> None:
        """Takes how far the work is."""
        if what != self._what:
            self._began_s = time.monotonic()
        self._what, self._done, self._total = what, done, total

    def erase(self) -> None:
        """Removes the line, in whose place something is printed."""
        with self._lock:
            if self._is_drawn:
                self._is_drawn = False
                _write(_ERASE)

    def text(self, now_s: float) -> str:
        """Returns the line."""
        if not self._total:
            return f"Working, {units.format_duration(now_s - self._started_s)}"
        line = f"{self._what}: {self._done:,} of {self._total:,}"
        if not self._done:
            return line
        left_s = (now_s - self._began_s) / self._done * (self._total - self._done)
        return f"{line}, about {units.format_duration(left_s)} left"

    def _tick(self) -> None:
        delay_s = SILENT_S
        while not self._ended.wait(delay_s):
            delay_s = _EVERY_S
            with self._lock:
                if not self._ended.is_set():
                    self._is_drawn = True
                    _write(f"{_ERASE}{self.text(time.monotonic())[: output.width()]}")


def _write(text: str) -> None:
    # Not by the stream, whose lock a process that is forked meanwhile would inherit.
    with contextlib.suppress(OSError, ValueError):
        os.write(sys.stderr.fileno(), text.encode())


_current: list[WorkLine] = []


@contextlib.contextmanager
def show_work() -> Iterator[None]:
    """Shows the line on a terminal while it is open."""
    if not output.is_terminal(sys.stderr):
        yield
        return
    line = WorkLine()
    _current.append(line)
    output.before_printing(line.erase)
    line.start()
    try:
        yield
    finally:
        end()


def end() -> None:
    """Ends the line, for work that has a line of its own."""
    while _current:
        _current.pop().stop()
    output.before_printing(None)
