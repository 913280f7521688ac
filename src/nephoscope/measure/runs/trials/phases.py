"""The phases of a trial: each with its limit, each on the trial's time line.

A failure is told with the phase in which it happened, because what to do next depends on it: a
load that does not start is another matter than a measurement that does not end.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from enum import StrEnum

from nephoscope.core.errors import BenchmarkFailed
from nephoscope.measure.runs.trials.failure_names import DEADLINE


class Phase(StrEnum):
    """What a trial goes through, in this order."""

    PREPARE = "prepare"  # conditions are set, hooks run before
    START = "start"  # servers, loads and probes are started, until all are ready
    MEASURE = "measure"  # told to go, until the results are there
    STOP = "stop"  # loads and servers are stopped, their counts read
    CLEAN = "clean"  # hooks run after


class PhaseFailed(BenchmarkFailed):
    """A benchmark's failure, with the phase in which it came."""

    def __init__(self, phase: Phase, failure: BenchmarkFailed, who: str = "") -> None:
        super().__init__(failure.name, failure.message, failure.hint, failure.exit_code)
        self.phase = phase
        self.who = who

    @property
    def reason(self) -> str:
        """The sentence of the trial's record."""
        who = f"{self.who}: " if self.who else ""
        return f"in phase {self.phase}: {who}{BenchmarkFailed.__str__(self)}"


class Timeline:
    """When each phase of one trial began and ended, in ns since the trial began."""

    def __init__(self, now: Callable[[], int] = time.monotonic_ns) -> None:
        self._now = now
        self._begun_ns = now()
        self._phases: dict[str, tuple[int, int]] = {}
        self.current = Phase.PREPARE

    @property
    def phases(self) -> dict[str, tuple[int, int]]:
        """Phase -> (start_ns, end_ns); only those that were reached."""
        return dict(self._phases)

    @contextlib.asynccontextmanager
    async def phase(self, phase: Phase, limit_s: float, who: str = "") -> AsyncIterator[None]:
        """Runs a phase; PhaseFailed when it takes longer than `limit_s` or a benchmark fails."""
        self.current = phase
        start_ns = self._now() - self._begun_ns
        try:
            async with asyncio.timeout(limit_s) as limit:
                yield
        except PhaseFailed:
            raise
        except BenchmarkFailed as failure:
            raise PhaseFailed(phase, failure, who) from failure
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise PhaseFailed(phase, _late(phase, limit_s), who) from error
        finally:
            self._phases[phase.value] = (start_ns, self._now() - self._begun_ns)


def _late(phase: Phase, limit_s: float) -> BenchmarkFailed:
    key = "timeout" if phase is Phase.MEASURE else f"phases.{phase}"
    return BenchmarkFailed(
        DEADLINE, f"{_LATE[phase]} after {limit_s:g} s.", f"Give it more time (`{key}`)."
    )


_LATE = {
    Phase.PREPARE: "conditions and hooks were not done",
    Phase.START: "not all sides were ready",
    Phase.MEASURE: "the measurement was not done",
    Phase.STOP: "not all loads and far sides had ended",
    Phase.CLEAN: "the hooks were not done",
}
