"""A host that is booted or made anew, as a trial of `host.boot`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator

from nephoscope.core.errors import BenchmarkFailed, NephoscopeError, PlanError
from nephoscope.core.model import Sample
from nephoscope.measure.lab.boot import BootTimes
from nephoscope.measure.runs.schedule.cells import BOOT
from nephoscope.measure.runs.schedule.groups import Group
from nephoscope.measure.runs.trials.phases import Phase, PhaseFailed, Timeline
from nephoscope.measure.runs.trials.records import GroupResult
from nephoscope.measure.runs.trials.target_pool import TargetLost
from nephoscope.measure.runs.trials.trial import Stage
from nephoscope.measure.targets import Done, TargetTrial


class BootTrial:
    """One boot of a target's host: its phases, and in `result` what they brought back."""

    def __init__(self, group: Group, stage: Stage, limit_s: float) -> None:
        self._target = group.targets[0]
        self._host = stage.pool.wanted(self._target).boots_as
        self._level = str(group.setting.params.get("level", BOOT))
        self._conditions = group.setting.conditions
        self._stage = stage
        self._limit_s = limit_s
        self._timeline = Timeline()
        self._started_ns = time.monotonic_ns()
        self.result = GroupResult(started_at=time.time())
        self.phases = (self._boot, self._open_again)

    @contextlib.asynccontextmanager
    async def guarded(self) -> AsyncIterator[None]:
        """Turns a failure of a phase into the result."""
        out = self.result
        try:
            yield
        except PhaseFailed as failure:
            out.failure = failure
        except TargetLost as lost:
            out.lose(lost, f"in phase {self._timeline.current}")
        except PlanError:
            raise
        except NephoscopeError as error:
            no_boot = BenchmarkFailed("no_boot", error.message, error.hint)
            out.failure = PhaseFailed(Phase.MEASURE, no_boot)
        out.timeline = self._timeline.phases
        out.elapsed_ns = time.monotonic_ns() - self._started_ns

    async def _boot(self) -> None:
        """Boots the host; the segments of its boot are the samples."""
        environment = self._stage.environment
        async with self._timeline.phase(Phase.MEASURE, self._limit_s):
            times = await environment.renew(self._host, self._level, self._conditions)
            elapsed_ns = time.monotonic_ns() - self._started_ns
        samples: tuple[Sample, ...] = ()
        if times is not None:
            samples = segments(times)
        notes = () if samples else (f"{self._host} has no kernel of its own to boot.",)
        done = Done(elapsed_ns, len(samples), notes=notes)
        self.result.trials[self._target] = TargetTrial(samples, {}, done, None)

    async def _open_again(self) -> None:
        async with self._timeline.phase(Phase.CLEAN, self._limit_s):
            await self._stage.pool.reopen([self._host])


def segments(times: BootTimes) -> tuple[Sample, ...]:
    """Samples of a boot from its marks since the request; a mark that a platform does not have
    gives no sample."""
    kernel_ns, userland_ns, reachable_ns = times.kernel_ns, times.userland_ns, times.reachable_ns
    values = {
        "boot_reachable_ns": reachable_ns,
        "boot_answer_ns": times.answer_ns,
        "boot_running_ns": times.running_ns,
        "boot_request_ns": kernel_ns,
    }
    if kernel_ns is not None and userland_ns is not None:
        values["boot_kernel_ns"] = userland_ns - kernel_ns
    if userland_ns is not None:
        values["boot_userland_ns"] = reachable_ns - userland_ns
    return tuple(Sample(name, float(ns)) for name, ns in values.items() if ns is not None)
