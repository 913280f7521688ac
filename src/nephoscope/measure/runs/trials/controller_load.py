"""The controller's own load while trials are measured: its CPU time, and how late it is.

A clock that ticks while the run lasts reads the CPU time of the process; a tick that comes late
shows that the controller was busy with something else. Both are asked for the time of a trial.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import time
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from nephoscope.core.records import dataclass

TICK_S = 0.05
"""Between two readings: 20 a second take less than 0.1 % of a CPU."""

JUDGED_FROM_NS = 200_000_000
"""Shorter times hold too few readings: what the controller does right before and after them, which
disturbs nothing, would be counted as done meanwhile."""

_READINGS = 36_000
"""Readings that are held at least: of the last half hour."""


@dataclass(frozen=True, slots=True)
class ControllerUse:
    """What the controller did during a time. busy_cpus: CPU time divided by that time.

    late_ns: the longest time for which it answered nothing.
    """

    busy_cpus: float
    late_ns: int

    @property
    def share(self) -> float:
        """Returns the share of the CPU time available to it that the controller used."""
        return self.busy_cpus / len(os.sched_getaffinity(0))

    def counters(self) -> dict[str, float]:
        """Returns the counters of a trial's record."""
        return {"controller_busy_cpus": self.busy_cpus, "controller_late_ns": self.late_ns}


class ControllerLoad:
    """Readings of the controller's load. now_ns: the wall clock. cpu_ns: CPU time of the thread
    that measures; other threads of the process may be a server of the user's."""

    def __init__(
        self,
        now_ns: Callable[[], int] = time.time_ns,
        cpu_ns: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        self._now_ns, self._cpu_ns = now_ns, cpu_ns
        self._times: list[int] = []
        self._cpu: list[int] = []
        self._late: list[int] = []
        self._due_ns = 0
        self._began_ns, self._began_cpu_s = 0, 0.0
        self._measured_ns = 0
        self._trials = 0
        self._latest_ns = 0

    @contextlib.asynccontextmanager
    async def sampled(self) -> AsyncIterator[None]:
        """Takes readings while the block lasts."""
        self._began_ns, self._began_cpu_s = self._now_ns(), time.process_time()
        self.read()
        task = asyncio.ensure_future(self._tick())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _tick(self) -> None:
        while True:
            self._due_ns = self._now_ns() + round(TICK_S * 1e9)
            await asyncio.sleep(TICK_S)
            self.read()

    def read(self) -> None:
        """Takes a reading now."""
        now_ns = self._now_ns()
        late_ns = max(0, now_ns - self._due_ns) if self._due_ns else 0
        self._latest_ns = max(self._latest_ns, late_ns)
        self._times.append(now_ns)
        self._cpu.append(self._cpu_ns())
        self._late.append(late_ns)
        if len(self._times) > 2 * _READINGS:
            for readings in (self._times, self._cpu, self._late):
                del readings[:_READINGS]

    def over(self, start_ns: int, end_ns: int) -> ControllerUse | None:
        """Returns the use during a time of the wall clock; None for one that is too short, or was
        not watched from its beginning."""
        if end_ns - start_ns < JUDGED_FROM_NS:
            return None
        self.read()
        first, last = bisect_right(self._times, start_ns), bisect_left(self._times, end_ns)
        if first == 0:
            return None
        used_ns = self._cpu_at(end_ns) - self._cpu_at(start_ns)
        # The reading after the end shows a wait that began before it.
        late_ns = max(
            (
                late
                for at_ns, late in zip(
                    self._times[first : last + 1], self._late[first : last + 1], strict=True
                )
                if at_ns - late < end_ns
            ),
            default=0,
        )
        return ControllerUse(max(0.0, used_ns) / (end_ns - start_ns), late_ns)

    def _cpu_at(self, at_ns: int) -> float:
        """Returns the CPU time at a moment, between the readings around it."""
        place = min(bisect_right(self._times, at_ns), len(self._times) - 1)
        before, after = self._times[place - 1], self._times[place]
        if after <= before:
            return self._cpu[place]
        share = min(1.0, (at_ns - before) / (after - before))
        return self._cpu[place - 1] + share * (self._cpu[place] - self._cpu[place - 1])

    def add_trials(self, count: int, measured_ns: int) -> None:
        """Counts trials that ended. measured_ns: what they took together."""
        self._trials += count
        self._measured_ns += measured_ns

    def summary(self) -> Mapping[str, Any]:
        """Returns what the manifest states of the controller: of this process, since it began."""
        return {
            "cpu_s": round(time.process_time() - self._began_cpu_s, 3),
            "elapsed_s": round((self._now_ns() - self._began_ns) / 1e9, 3),
            "trials": self._trials,
            "trials_s": round(self._measured_ns / 1e9, 3),
            "late_ns": self._latest_ns,
            "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }
