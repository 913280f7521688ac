"""One group until it is stored: executed, tried again where the plan says so, judged, kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from nephoscope.catalog import HOST_BOOT
from nephoscope.core.errors import BenchmarkFailed
from nephoscope.core.model import TrialKey, TrialRecord
from nephoscope.measure.runs.observer import Observer, Status
from nephoscope.measure.runs.schedule.groups import Group
from nephoscope.measure.runs.schedule.headline import rows_of_samples
from nephoscope.measure.runs.schedule.progress import Progress
from nephoscope.measure.runs.trials.boots import BootTrial
from nephoscope.measure.runs.trials.phases import DEADLINE, Phase
from nephoscope.measure.runs.trials.records import (
    GroupResult,
    RecordContext,
    StoredTrial,
    make_records,
)
from nephoscope.measure.runs.trials.trial import GroupTrial, Stage
from nephoscope.store import StoredRun, counts

_LEAST_TIMEOUT_S = 1.0


class Execution:
    """Executes groups of a run one by one, or several at a time; counts what came of them."""

    def __init__(
        self,
        run: StoredRun,
        stage: Stage,
        progress: Progress,
        observer: Observer,
        status: Callable[[], Status],
        stored: Sequence[TrialRecord],
    ) -> None:
        self._run = run
        self._stage = stage
        self._progress = progress
        self._observer = observer
        self._status = status
        self._position = 1 + max((record.position for record in stored), default=-1)
        self.trials = len(stored)
        self.valid = sum(counts(record) for record in stored)
        self.failure: BenchmarkFailed | None = None
        # The budget runs from here: opening targets and writing files are part of what is spent.
        self._mark_s = time.monotonic()

    async def execute(
        self, round: int, group: Group, nest: Mapping[str, int], notes: Sequence[str] = ()
    ) -> bool:
        """Measures and stores a group; False when the budget ended before it did."""
        if self._progress.out_of_time(self._members(group), group.turn):
            return False
        spec = self._stage.catalog.benchmark(group.setting.benchmark)
        keys = group.keys(round)
        lost = self._stage.pool.missing(group.needs, round)
        if lost is not None:
            about = RecordContext(round, self._place(round), self._spend(), 1, nest, notes)
            measured = GroupResult(started_at=time.time())
            measured.lose(lost, "not tried")
            self._keep(make_records(group, measured, spec, {}, about))
            return True
        for attempt in range(1, 2 + self._stage.plan.retry.times):
            timeout_s, cut_short = self._timeout(group)
            self._started(keys, group, attempt)
            if group.setting.benchmark == HOST_BOOT:
                trial: BootTrial | GroupTrial = BootTrial(group, self._stage, timeout_s)
            else:
                trial = GroupTrial(group, self._stage, timeout_s, round)
            measured = await trial.run()
            if cut_short and _ran_out(measured):
                self._run.event({"event": "trial_cut_short_by_budget", "trial": keys[0].name})
                return False
            if not self._try_again(measured, keys, attempt):
                break
        if measured.lost is not None:
            self._stage.pool.lose(measured.lost, round)
            self._run.event(
                {"event": "target_lost", "target": measured.lost.name, "why": str(measured.lost)}
            )
        else:
            self._stage.pool.answered(group.needs)
        # The last failure has the words with which a run ends in which nothing counts.
        self.failure = measured.failure or next(iter(measured.failures), self.failure)
        about = RecordContext(round, self._place(round), self._spend(), attempt, nest, notes)
        self._keep(make_records(group, measured, spec, self._accepted(group), about))
        return True

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

    def _try_again(self, measured: GroupResult, keys: Sequence[TrialKey], attempt: int) -> bool:
        """Returns whether the plan wants another attempt; the one that failed stays in the
        journal."""
        retry = self._stage.plan.retry
        name = measured.failure_name
        if attempt > retry.times or not name or name not in retry.on or measured.lost is not None:
            return False
        failure = measured.failure
        why = [failure.reason] if failure else [str(one) for one in measured.failures]
        self._run.event(
            {
                "event": "trial_tried_again",
                "trial": keys[0].name,
                "attempt": attempt,
                "failure": name,
                "reasons": [*why, *(sentence for _, sentence in measured.broken)],
                "timeline": measured.timeline,
            }
        )
        return True

    def _started(self, keys: Sequence[TrialKey], group: Group, attempt: int) -> None:
        event = {"event": "trial_started", "trial": keys[0].name}
        if len(keys) > 1:
            event["together"] = ", ".join(key.target for key in keys)
        if attempt > 1:
            event["attempt"] = str(attempt)
        self._run.event(event)
        for key in keys:
            self._observer.trial_started(key, group.setting, self._status())

    def _timeout(self, group: Group) -> tuple[float, bool]:
        """Time to measure, and whether the budget made it shorter than the plan says."""
        timeout_s = group.setting.timeout_s
        left_s = self._progress.time_for(self._members(group), group.turn)
        if left_s is None:
            return timeout_s, False
        left_s = max(_LEAST_TIMEOUT_S, left_s - (time.monotonic() - self._mark_s))
        return min(left_s, timeout_s), left_s < timeout_s

    def _place(self, round: int) -> int:
        """See `TrialRecord.position`. Simulated trials end in an order that another run with their
        seed would not repeat."""
        return max(0, round) if self._stage.plan.simulated else self._position

    def _members(self, group: Group) -> Sequence[tuple[int, str]]:
        return [pair for pair in group.members if self._progress.knows(pair)]

    def _spend(self) -> float:
        """Seconds since the last trial ended: each belongs to one trial, however many run."""
        now = time.monotonic()
        spent_s, self._mark_s = now - self._mark_s, now
        return spent_s

    def _keep(self, trials: Sequence[StoredTrial]) -> None:
        self._run.append_together(trials)
        self._position += len(trials)
        self.trials += len(trials)
        for trial in trials:
            self.valid += counts(trial.record)
            rows = rows_of_samples(trial.samples, trial.record.factors)
            self._progress.add(trial.record, rows)
        for trial in trials:
            self._run.event(_ended(trial.record))
            self._observer.trial_measured(trial.record, trial.samples)
            self._observer.trial_ended(trial.record, self._status())


def _ran_out(measured: GroupResult) -> bool:
    """Returns whether the measurement itself was ended by its time limit."""
    if measured.failure is not None:
        return measured.failure.name == DEADLINE and measured.failure.phase is Phase.MEASURE
    return any(failure.name == DEADLINE for failure in measured.failures)


def _ended(record: TrialRecord) -> dict[str, object]:
    """The journal's line on a finished trial."""
    event: dict[str, object] = {
        "event": "trial_ended",
        "trial": record.key.name,
        "status": record.status.value,
        "reasons": record.reasons,
        "elapsed_ns": record.elapsed_ns,
        "spent_s": record.spent_s,
        "timeline": record.timeline,
    }
    if record.skew_ns is not None:
        event["skew_ns"] = record.skew_ns
    if record.loads:
        event["loads"] = record.loads
    if record.attempt > 1:
        event["attempt"] = record.attempt
    return event
