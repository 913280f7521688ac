"""A witness of CPUs that stood still: a hypervisor that runs none of a guest for a while accounts
only a part of that as stolen time, or nothing."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from types import TracebackType

PERIOD_S = 0.002
"""Between two looks: two threads that look so often take less than a hundredth of a CPU."""


class Standstill:
    """Looks at each CPU while a block lasts. longest_s: by how much a look was late at most.

    Looks have real-time priority where that may be set, so that no ordinary program delays one.
    """

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._late_s: list[float] = []
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Standstill:
        self._late_s.clear()
        self._ended.clear()
        self._threads = [
            threading.Thread(target=self._look, args=(cpu,), daemon=True)
            for cpu in os.sched_getaffinity(0)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self.longest_s = max(self._late_s)

    def _look(self, cpu: int) -> None:
        # Both are of this thread only.
        os.sched_setaffinity(0, {cpu})
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        longest_s = 0.0
        while not self._ended.is_set():
            due = time.monotonic() + PERIOD_S
            time.sleep(PERIOD_S)
            longest_s = max(longest_s, time.monotonic() - due)
        self._late_s.append(longest_s)

    def reason(self, allowed_s: float) -> str:
        """Returns in words that a CPU stood for longer than allowed; "" where none did."""
        if self.longest_s <= allowed_s:
            return ""
        return f"a CPU that ran nothing for {1e3 * self.longest_s:.1f} ms"
