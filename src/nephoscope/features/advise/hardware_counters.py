"""Hardware counters of a process and its descendants (perf events), where the machine has them."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterable, Mapping

from nephoscope.core.records import dataclass

_SYSCALL = {"x86_64": 298, "aarch64": 241}
_ATTRIBUTES = struct.Struct("=IIQQQQQIIQ")
_TIMES_ENABLED_AND_RUNNING = 0x3
_INHERIT, _EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6
_CLOSE_ON_EXEC = 8
_COUNT = struct.Struct("=QQQ")

EVENTS: Mapping[str, tuple[int, int]] = {
    "cycles": (0, 0),
    "instructions": (0, 1),
    "cache misses": (0, 3),
}
"""Name -> type and number of the event (linux/perf_event.h)."""

_NOT_PERMITTED = "not permitted; see sysctl kernel.perf_event_paranoid"
_REASONS = {
    errno.ENOENT: "this machine has none",
    errno.EOPNOTSUPP: "this machine has none",
    errno.EACCES: _NOT_PERMITTED,
    errno.EPERM: _NOT_PERMITTED,
}

MOST_THREADS = 256
"""Threads that are counted from the start; their later threads and children are counted too."""


@dataclass(frozen=True, slots=True)
class HardwareCounts:
    """Counts of user-space events. hidden: why there are none; '' where there are."""

    counts: Mapping[str, float]
    hidden: str = ""

    @property
    def instructions_per_cycle(self) -> float | None:
        """Returns instructions per cycle; None where they are hidden."""
        return self._ratio("instructions", "cycles")

    @property
    def misses_per_1000_instructions(self) -> float | None:
        """Returns last-level cache misses per 1000 instructions; None where they are hidden."""
        share = self._ratio("cache misses", "instructions")
        return None if share is None else 1000 * share

    def _ratio(self, above: str, below: str) -> float | None:
        if above not in self.counts or not self.counts.get(below):
            return None
        return self.counts[above] / self.counts[below]


class EventCounters:
    """Open counters of threads; `read` closes them."""

    def __init__(self, threads: Iterable[int]) -> None:
        self._files: list[tuple[str, int]] = []
        self._hidden = ""
        for thread in sorted(threads)[:MOST_THREADS]:
            for name, event in EVENTS.items():
                self._open(thread, name, event)

    def _open(self, thread: int, name: str, event: tuple[int, int]) -> None:
        kind, number = event
        flags = _INHERIT | _EXCLUDE_KERNEL | _EXCLUDE_HYPERVISOR
        attributes = _ATTRIBUTES.pack(
            kind, _ATTRIBUTES.size, number, 0, 0, _TIMES_ENABLED_AND_RUNNING, flags, 0, 0, 0
        )
        syscall = _SYSCALL.get(platform.machine())
        if syscall is None:
            self._hidden = "not known for this processor"
            return
        library = ctypes.CDLL(None, use_errno=True)
        file = library.syscall(syscall, attributes, thread, -1, -1, _CLOSE_ON_EXEC)
        if file >= 0:
            self._files.append((name, file))
        else:
            number = ctypes.get_errno()
            self._hidden = _REASONS.get(number, os.strerror(number))

    def read(self) -> HardwareCounts:
        """Returns the counts since the start, scaled where the counters were shared by others."""
        counts: dict[str, float] = {}
        for name, file in self._files:
            value, enabled, running = _COUNT.unpack(os.read(file, _COUNT.size))
            os.close(file)
            if running:
                counts[name] = counts.get(name, 0.0) + value * enabled / running
        self._files = []
        return HardwareCounts(counts, "" if counts else self._hidden or "nothing was counted")
