"""One group on its targets until it is stored: measured, tried again where the plan says so."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from nephoscope.catalog import HOST_BOOT, VOLUME_RESTORE
from nephoscope.core.errors import BenchmarkFailed
from nephoscope.core.model import TrialRecord
from nephoscope.measure.runs.recorder import Recorder
from nephoscope.measure.runs.schedule.groups import Group, Work
from nephoscope.measure.runs.schedule.progress import Progress
from nephoscope.measure.runs.trials.boots import BootTrial
from nephoscope.measure.runs.trials.failure_names import DEADLINE
from nephoscope.measure.runs.trials.phases import Phase
from nephoscope.measure.runs.trials.records import GroupResult, make_records
from nephoscope.measure.runs.trials.restores import RestoreTrial
from nephoscope.measure.runs.trials.trial import GroupTrial, Stage
from nephoscope.measure.targets.kinds.record import CONTROLLER

_LEAST_TIMEOUT_S = 1.0


class TrialRunner:
    """Measures groups of a run one by one, or several at a time.

    failure: the last one of a trial, with whose words a run ends in which nothing counts.
    """

    def __init__(
        self,
        stage: Stage,
        progress: Progress,
        recorder: Recorder,
        stored: Sequence[TrialRecord],
    ) -> None:
        self._stage = stage
        self._progress = progress
        self._recorder = recorder
        self._position = 1 + max((record.position for record in stored), default=-1)
        self.failure: BenchmarkFailed | None = None
        # The budget runs from here: opening targets and writing files are part of what is spent.
        self._mark_s = time.monotonic()

    async def run(self, work: Work) -> bool:
        """Measures and stores a group; False when the budget ended before it did."""
        group, pool = work.group, self._stage.pool
        if self._progress.out_of_time(group.members, group.repeat_index):
            return False
        lost = pool.missing(group.needs, work.round)
        if lost is not None:
            measured = GroupResult(started_at=time.time())
            measured.lose(lost, "not tried")
            self._keep(work, measured, {})
            return True
        for attempt in range(1, 2 + self._stage.plan.retry.times):
            timeout_s, cut_short = self._timeout(group)
            self._recorder.attempt_started(work.keys, group.setting, attempt)
            trial = self._trial(work, timeout_s)
            async with trial.guarded():
                for phase in trial.phases:
                    await phase()
            measured = trial.result
            if cut_short and _ran_out(measured):
                self._recorder.note("trial_cut_short_by_budget", trial=work.keys[0].name)
                return False
            if not self._is_tried_again(measured, attempt):
                break
            self._recorder.tried_again(work.keys[0], attempt, measured)
        if measured.lost is not None:
            pool.lose(measured.lost, work.round)
            self._recorder.note("target_lost", target=measured.lost.name, why=str(measured.lost))
        else:
            pool.answered(group.needs)
        self.failure = measured.failure or next(iter(measured.failures), self.failure)
        self._keep(work, measured, self._accepted(group), attempt)
        return True

    def _trial(self, work: Work, timeout_s: float) -> BootTrial | GroupTrial | RestoreTrial:
        if work.group.setting.benchmark == HOST_BOOT:
            return BootTrial(work.group, self._stage, timeout_s)
        if work.group.setting.benchmark == VOLUME_RESTORE:
            return RestoreTrial(work.group, self._stage, timeout_s)
        return GroupTrial(work.group, self._stage, timeout_s, work.round)

    def _accepted(self, group: Group) -> dict[str, Sequence[str]]:
        """Reasons that do not make a trial invalid, by target."""
        stage = self._stage
        return {
            name: (
                *stage.plan.accept,
                *stage.environment.accepts(stage.pool.wanted(name)),
                *stage.pool.accepts(name),
            )
            for name in group.participants
        }

    def _is_tried_again(self, measured: GroupResult, attempt: int) -> bool:
        retry, name = self._stage.plan.retry, measured.failure_name
        return attempt <= retry.times and name in retry.on and measured.lost is None

    def _timeout(self, group: Group) -> tuple[float, bool]:
        """Time to measure, and whether the budget made it shorter than the plan says."""
        timeout_s = group.setting.timeout_s
        left_s = self._progress.time_for(group.members, group.repeat_index)
        if left_s is None:
            return timeout_s, False
        left_s = max(_LEAST_TIMEOUT_S, left_s - (time.monotonic() - self._mark_s))
        return min(left_s, timeout_s), left_s < timeout_s

    def _keep(
        self,
        work: Work,
        measured: GroupResult,
        accept: Mapping[str, Sequence[str]],
        attempt: int = 1,
    ) -> None:
        # Simulated trials end in an order that another run with their seed would not repeat.
        position = max(0, work.round) if self._stage.plan.simulated else self._position
        spec = self._stage.catalog.benchmark(work.group.setting.benchmark)
        trials = make_records(
            work,
            measured,
            spec,
            accept,
            position=position,
            spent_s=self._spend(),
            attempt=attempt,
            is_here=self._is_here(work.group),
        )
        self._recorder.keep(trials)
        self._position += len(trials)

    def _is_here(self, group: Group) -> bool:
        """Returns whether a program of a trial runs on the controller's machine."""
        pool = self._stage.pool
        real = [name for name in group.needs if not pool.wanted(name).traits().simulated]
        return CONTROLLER in pool.machines(real)

    def _spend(self) -> float:
        """Seconds since the last trial ended: each belongs to one trial, however many run."""
        now = time.monotonic()
        spent_s, self._mark_s = now - self._mark_s, now
        return spent_s


def _ran_out(measured: GroupResult) -> bool:
    """Returns whether the measurement itself was ended by its time limit."""
    if measured.failure is not None:
        return measured.failure.name == DEADLINE and measured.failure.phase is Phase.MEASURE
    return any(failure.name == DEADLINE for failure in measured.failures)
