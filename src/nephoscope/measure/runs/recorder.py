"""What a run brings about is written down: trials to the store, events to journal and observer."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from nephoscope import __version__
from nephoscope.core.errors import BenchmarkFailed
from nephoscope.core.model import Setting, TrialKey, TrialRecord
from nephoscope.core.naming import factors_text
from nephoscope.measure.plans import Plan
from nephoscope.measure.runs.observer import Observer, Status
from nephoscope.measure.runs.schedule.alternatives import Outcome
from nephoscope.measure.runs.schedule.headline import rows_of_samples
from nephoscope.measure.runs.schedule.progress import UNMEASURABLE, Progress, budget_s
from nephoscope.measure.runs.trials.records import GroupResult, StoredTrial
from nephoscope.store import FAILED, MEASURED, StoredRun, counts, identity


class Recorder:
    """Writes down what happens in a run; adds each finished trial to `progress`.

    trials, valid: how many are stored, and how many of them count.
    """

    def __init__(
        self,
        run: StoredRun,
        plan: Plan,
        progress: Progress,
        observer: Observer,
        stored: Sequence[TrialRecord],
    ) -> None:
        self._run = run
        self._progress = progress
        self._observer = observer
        self._budget_s = budget_s(plan)
        self.trials = len(stored)
        self.valid = sum(map(counts, stored))

    def begin(self, resumed: bool) -> None:
        """Measuring begins in this process; `resumed` where another one has begun it."""
        known = {"resumed": resumed, "trials": self.trials, "nephoscope": __version__}
        self.note("session_started", **identity(), **known)
        self._observer.run_started(self._run, resumed, self.trials)
        for record in self._run.records():
            if record.position < 0:
                self.warn(f"Trial {record.key.name} is measured again: {record.reasons[0]}.")

    def note(self, event: str, **values: Any) -> None:
        """An event for the journal alone."""
        self._run.event({"event": event, **values})

    def say(self, sentence: str) -> None:
        """What is being made ready."""
        self.note("said", sentence=sentence)
        self._observer.reported(sentence)

    def warn(self, sentence: str) -> None:
        """What a person should know now."""
        self.note("warning", sentence=sentence)
        self._observer.warning(sentence)

    def attempt_started(self, keys: Sequence[TrialKey], setting: Setting, attempt: int) -> None:
        """The trials of a group begin."""
        several = {"together": ", ".join(key.target for key in keys)} if len(keys) > 1 else {}
        again = {"attempt": str(attempt)} if attempt > 1 else {}
        self.note("trial_started", trial=keys[0].name, **several, **again)
        for key in keys:
            self._observer.trial_started(key, setting, self._status())

    def tried_again(self, key: TrialKey, attempt: int, measured: GroupResult) -> None:
        """An attempt failed, and another one follows."""
        failure = measured.failure
        why = [failure.reason] if failure else [str(failure) for failure in measured.failures]
        self.note(
            "trial_tried_again",
            trial=key.name,
            attempt=attempt,
            failure=measured.failure_name,
            reasons=[*why, *(sentence for _, sentence in measured.broken)],
            timeline=measured.timeline,
        )

    def keep(self, trials: Sequence[StoredTrial]) -> None:
        """Stores finished trials, adds them to the progress, and says so."""
        self._run.append_together(trials)
        self.trials += len(trials)
        for trial in trials:
            self.valid += counts(trial.record)
            rows = rows_of_samples(trial.samples, trial.record.factors)
            self._progress.add(trial.record, rows)
        for trial in trials:
            self.note("trial_ended", **_ended(trial.record))
            self._observer.trial_measured(trial.record, trial.samples)
            self._observer.trial_ended(trial.record, self._status())

    def alternatives_ended(self, outcomes: Sequence[Outcome]) -> None:
        """A round is over, and these need no more trials."""
        for outcome in outcomes:
            self.note("alternative_ended", **asdict(outcome))
            self._observer.alternative_ended(outcome, self._status())

    def note_end(self, why: str) -> None:
        """Says in the journal why this process stopped before the run was measured."""
        with contextlib.suppress(Exception):  # a full disk must not hide the reason for the end
            self.note("session_ended", why=why)

    def finish(
        self,
        lost: Mapping[str, str],
        failure: BenchmarkFailed | None,
        controller: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Every trial is there: the outcomes go into the manifest, and the run is measured.

        controller: its own load, see `ControllerLoad.summary`.

        lost: targets that were given up, and why. failure: the last one of a trial, whose words are
        those of the BenchmarkFailed that is raised when not one trial counts.
        """
        outcomes = self._progress.outcomes()
        refused = [_refusal(outcome) for outcome in outcomes if outcome.word in UNMEASURABLE]
        self._run.update(
            outcomes=[asdict(outcome) for outcome in outcomes],
            refused=refused,
            lost=dict(lost),
            spent_s=round(self._progress.spent_s, 3),
            controller=dict(controller),
        )
        self.note("session_ended", why="measured")
        if self.valid:
            self._run.finish(MEASURED)
            return
        self._run.finish(FAILED)
        if failure is not None:
            raise BenchmarkFailed(failure.name, failure.message, failure.hint, failure.exit_code)
        raise BenchmarkFailed(
            "no_valid_trial",
            f"No trial counts: {'; '.join(refused) or 'see the run'}.",
            f"`nephoscope show {self._run.id}` lists them with their reasons.",
        )

    def _status(self) -> Status:
        known = self._progress
        return Status(
            self.trials,
            known.alternatives,
            known.ended,
            known.spent_s,
            self._budget_s,
            known.time_left(),
        )


def _ended(record: TrialRecord) -> dict[str, Any]:
    """The journal's line on a finished trial."""
    event: dict[str, Any] = {
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


def _refusal(outcome: Outcome) -> str:
    """Why a result says nothing about an alternative, for the manifest."""
    levels = factors_text(outcome.factors)
    setting = f" ({levels})" if levels else ""
    return f"{outcome.benchmark}{setting} on {outcome.target}: {outcome.reason}"
