"""A volume that is copied and restored, as a trial of `volume.restore`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from nephoscope.catalog import VOLUME_RESTORE
from nephoscope.core.errors import BenchmarkFailed, NephoscopeError, PlanError
from nephoscope.core.model import Sample
from nephoscope.measure.runs.schedule.groups import Group
from nephoscope.measure.runs.trials.phases import Phase, PhaseFailed, Timeline
from nephoscope.measure.runs.trials.records import GroupResult
from nephoscope.measure.runs.trials.trial import Stage
from nephoscope.measure.targets import Done, TargetTrial

if TYPE_CHECKING:
    from nephoscope.measure.cloud.restores import RestoreTimes

_MIB = 1 << 20


class RestoreTrial:
    """One restoration: its phase, and in `result` what it brought back."""

    def __init__(self, group: Group, stage: Stage, limit_s: float) -> None:
        self._target = group.targets[0]
        self._host = stage.pool.wanted(self._target).name
        spec, params = stage.catalog.benchmark(VOLUME_RESTORE), group.setting.params
        values = {param.id: params.get(param.id, param.default) for param in spec.params}
        self._directory = str(values["directory"])
        self._data_bytes = int(values["data_bytes"]) // _MIB * _MIB
        self._stage = stage
        self._limit_s = limit_s
        self._timeline = Timeline()
        self._started_ns = time.monotonic_ns()
        self.result = GroupResult(started_at=time.time())
        self.phases = (self._restore,)

    @contextlib.asynccontextmanager
    async def guarded(self) -> AsyncIterator[None]:
        """Turns a failure of the phase into the result."""
        out = self.result
        try:
            yield
        except PhaseFailed as failure:
            out.failure = failure
        except PlanError:
            raise
        except NephoscopeError as error:
            failed = BenchmarkFailed("no_restore", error.message, error.hint)
            out.failure = PhaseFailed(Phase.MEASURE, failed)
        out.timeline = self._timeline.phases
        out.elapsed_ns = time.monotonic_ns() - self._started_ns

    async def _restore(self) -> None:
        environment = self._stage.environment
        async with self._timeline.phase(Phase.MEASURE, self._limit_s):
            times = await environment.restore(
                self._host, self._directory, self._data_bytes, self._limit_s
            )
        samples = segments(times, self._data_bytes)
        elapsed_ns = time.monotonic_ns() - self._started_ns
        done = Done(elapsed_ns, len(samples), notes=())
        self.result.trials[self._target] = TargetTrial(samples, {}, done, None)


def segments(times: RestoreTimes, data_bytes: int) -> tuple[Sample, ...]:
    """Returns the samples of a restoration."""
    seconds = {
        "snapshot_complete_ns": times.snapshot_s,
        "restore_usable_ns": times.usable_s,
        "volume_create_ns": times.created_s,
        "volume_attach_ns": times.attached_s,
        "volume_detach_ns": times.detached_s,
        "restore_create_ns": times.restored_s,
        "restore_attach_ns": times.restored_attached_s,
        "restore_first_block_ns": times.first_block_s,
        "volume_delete_ns": times.volume_removed_s,
        "snapshot_delete_ns": times.snapshot_removed_s,
    }
    rates = {
        "restore_first_read_bytes_per_s": data_bytes / times.first_read_s,
        "restore_second_read_bytes_per_s": data_bytes / times.second_read_s,
        "restore_first_to_second_ratio": times.second_read_s / times.first_read_s,
        "volume_write_bytes_per_s": data_bytes / times.written_s,
    }
    return tuple(
        Sample(name, value)
        for name, value in ({name: 1e9 * s for name, s in seconds.items()} | rates).items()
    )
