"""One process's work on a run: from the first missing trial to the last, or to its end.

Trial files are the truth. The session walks through the rounds; a trial that is stored is taken
in, one that is missing is measured; what comes next follows from `Progress` alone. So a run that
was killed at any moment goes on where it was, with no trial lost and none doubled.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from nephoscope import __version__, plans
from nephoscope.catalog import Catalog
from nephoscope.errors import BenchmarkFailed, TargetError
from nephoscope.model import Setting, TrialKey, TrialRecord, TrialStatus
from nephoscope.plans import Plan
from nephoscope.runs import preflight, validity
from nephoscope.runs.headline import (
    headline_metrics,
    headline_values,
    rows_of_samples,
    rows_of_table,
)
from nephoscope.runs.observer import Observer, Status
from nephoscope.runs.progress import DONE_WORDS, Pair, Progress
from nephoscope.store import FAILED, MEASURED, StoredRun
from nephoscope.targets import Target, TargetTrial

Factories = Mapping[str, Callable[[plans.Target], Target]]
"""Kind of target -> factory that takes the plan's record of it; see targets.TARGETS."""

_LEAST_TIMEOUT_S = 1.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Session:
    """The state of one process's work on a run; see the module."""

    def __init__(
        self,
        run: StoredRun,
        plan: Plan,
        settings: Sequence[Setting],
        catalog: Catalog,
        observer: Observer,
        factories: Factories,
    ) -> None:
        self._run = run
        self._plan = plan
        self._settings = settings
        self._catalog = catalog
        self._observer = observer
        self._factories = factories
        self._seed = int(run.manifest["seed"])
        specs = {setting.benchmark: catalog.benchmark(setting.benchmark) for setting in settings}
        self._progress = Progress(plan, settings, specs)
        self._metrics = [headline_metrics(specs[s.benchmark], s.headline) for s in settings]
        self._stored = run.tables()
        self._position = 1 + max((record.position for record, _ in self._stored), default=-1)
        self._round = 0
        self._failure: BenchmarkFailed | None = None
        self._valid = sum(_counts(record) for record, _ in self._stored)
        self.trials = len(self._stored)
        # The budget runs from here: opening targets and writing files are part of what is spent.
        self._mark_s = time.monotonic()

    def begin(self, resumed: bool) -> None:
        """Says in the journal and to the observer that this process measures now."""
        self._run.event(
            {
                "event": "session_started",
                "pid": os.getpid(),
                "resumed": resumed,
                "trials": self.trials,
                "nephoscope": __version__,
            }
        )
        self._observer.run_started(self._run, resumed, self.trials)
        for record in self._run.records():
            if record.position < 0:
                self._warn(f"Trial {record.key.name} is measured again: {record.reasons[0]}.")
        for sentence in preflight.check(self._run.path, self._settings, self._catalog):
            self._warn(sentence)

    async def measure(self) -> None:
        """Runs every trial that is missing. Cancelled by the signals that end a program."""
        with _cancelled_by_signals():
            async with self._opened() as targets:
                have = {record.key: (record, table) for record, table in self._stored}
                for number in self._progress.rounds():
                    self._round = number
                    active = self._progress.begin_round(number)
                    self._observer.round_started(self._status(), len(active))
                    order = plans.round_order(self._seed, self._round, active)
                    await self._one_round(order, have, targets)

    async def _one_round(
        self, order: Sequence[Pair], have: Mapping[TrialKey, Any], targets: Mapping[str, Target]
    ) -> None:
        for index, name in order:
            key = TrialKey(self._round, index, name)
            if key in have:
                record, table = have[key]
                rows = rows_of_table(table)
                self._progress.add(record, headline_values(rows, self._metrics[index]))
            elif self._progress.out_of_time((index, name)) or not await self._trial(
                key, self._settings[index], targets[name]
            ):
                self._progress.end_by_budget()
                break
        for outcome in self._progress.end_round():
            self._run.event({"event": "alternative_ended", **outcome.to_json()})
            self._observer.alternative_ended(outcome, self._status())

    async def _trial(self, key: TrialKey, setting: Setting, target: Target) -> bool:
        """Measures and stores one trial; False when the budget ended before the trial did."""
        self._run.event({"event": "trial_started", "trial": key.name})
        self._observer.trial_started(key, setting, self._status())
        timeout_s, cut_short = self._timeout(setting, (key.setting, key.target))
        started_at, started = time.time(), time.monotonic()
        trial = await target.run(setting.benchmark, setting.params, timeout_s)
        elapsed_ns = int((time.monotonic() - started) * 1e9)
        if cut_short and trial.failure is not None and trial.failure.name == "deadline":
            self._run.event({"event": "trial_cut_short_by_budget", "trial": key.name})
            return False
        record = self._judged(key, setting, trial, started_at, elapsed_ns)
        self._run.append(record, trial.samples, self._catalog.benchmark(setting.benchmark))
        self._position += 1
        self.trials += 1
        self._valid += _counts(record)
        self._failure = trial.failure or self._failure
        rows = rows_of_samples(trial.samples, setting.factors)
        self._progress.add(record, headline_values(rows, self._metrics[setting.index]))
        self._run.event(
            {
                "event": "trial_ended",
                "trial": key.name,
                "status": record.status.value,
                "reasons": record.reasons,
                "elapsed_ns": record.elapsed_ns,
                "spent_s": record.spent_s,
            }
        )
        self._observer.trial_ended(record, self._status())
        return True

    def _timeout(self, setting: Setting, pair: Pair) -> tuple[float, bool]:
        """Time for a trial, and whether the budget made it shorter than the plan says."""
        left_s = self._progress.time_for(pair)
        if left_s is None:
            return setting.timeout_s, False
        left_s = max(_LEAST_TIMEOUT_S, left_s - (time.monotonic() - self._mark_s))
        return min(left_s, setting.timeout_s), left_s < setting.timeout_s

    def _judged(
        self,
        key: TrialKey,
        setting: Setting,
        trial: TargetTrial,
        started_at: float,
        elapsed_ns: int,
    ) -> TrialRecord:
        """The record of a trial, with the verdict of the validity rules."""
        status, sentences = TrialStatus.FAILED, [str(trial.failure)]
        notes: tuple[str, ...] = ()
        beside: Mapping[str, Any] = {}
        if trial.done is not None:
            elapsed_ns, beside = trial.done.elapsed_ns, trial.done.beside
            spec = self._catalog.benchmark(setting.benchmark)
            found = validity.reasons(spec, setting.params, trial.samples, beside, elapsed_ns)
            sentences = [r.sentence for r in found if r.code not in self._plan.accept]
            accepted = (r.sentence for r in found if r.code in self._plan.accept)
            notes = (*trial.done.notes, *(f"Accepted by the plan: {text}." for text in accepted))
            status = TrialStatus.INVALID if sentences else TrialStatus.VALID
        now = time.monotonic()
        spent_s, self._mark_s = now - self._mark_s, now
        return TrialRecord(
            key=key,
            benchmark=setting.benchmark,
            params=setting.params,
            factors=setting.factors,
            status=status,
            reasons=tuple(sentences),
            position=self._position,
            started_at=started_at,
            elapsed_ns=elapsed_ns,
            beside=beside,
            notes=notes,
            documents=trial.documents,
            failure_name=trial.failure.name if trial.failure else "",
            spent_s=round(spent_s, 6),
        )

    @contextlib.asynccontextmanager
    async def _opened(self) -> AsyncIterator[dict[str, Target]]:
        """The plan's targets, open, with their fingerprints in the manifest; closed afterwards."""
        targets: dict[str, Target] = {}
        try:
            for wanted in self._plan.targets:
                target = self._factories[wanted.kind](wanted)
                targets[wanted.name] = target
                self._fingerprinted(wanted.name, await target.open())
            yield targets
        finally:
            for target in targets.values():
                await target.close()

    def _fingerprinted(self, name: str, fingerprint: Mapping[str, Any]) -> None:
        known = self._run.manifest["fingerprints"]
        before, now = _machine_id(known.get(name, {})), _machine_id(fingerprint)
        if before and now and before != now:
            raise TargetError(
                f"Run {self._run.id} was begun on another machine, and trials of two machines are "
                "no repetitions of one another.",
                "Go on there, or begin a new run here with --fresh.",
            )
        if name not in known:
            self._run.update(fingerprints={**known, name: dict(fingerprint)})
        self._run.event({"event": "target_opened", "target": name})
        self._observer.target_opened(name, fingerprint)

    def _warn(self, sentence: str) -> None:
        self._run.event({"event": "warning", "sentence": sentence})
        self._observer.warning(sentence)

    def _status(self) -> Status:
        outcomes = self._progress.outcomes()
        return Status(
            round=self._round,
            trials=self.trials,
            alternatives=self._progress.alternatives,
            ended=len(outcomes),
            converged=sum(outcome.word in DONE_WORDS for outcome in outcomes),
            spent_s=self._progress.spent_s,
            budget_s=self._plan.budget_s,
        )

    def note_end(self, why: str) -> None:
        """Says in the journal why this process stopped before the run was measured."""
        with contextlib.suppress(Exception):  # a full disk must not hide the reason for the end
            self._run.event({"event": "session_ended", "why": why})

    def finish(self) -> None:
        """Every trial is there: the outcomes go into the manifest, and the run is measured.

        Raises BenchmarkFailed when not one trial counts.
        """
        outcomes = self._progress.outcomes()
        refused = [
            f"{outcome.benchmark} {_told(outcome.factors)}on {outcome.target}: {outcome.reason}"
            for outcome in outcomes
            if outcome.word in ("refused", "no_valid")
        ]
        self._run.update(
            outcomes=[outcome.to_json() for outcome in outcomes],
            refused=refused,
            spent_s=round(self._progress.spent_s, 3),
        )
        self._run.event({"event": "session_ended", "why": "measured"})
        if self._valid == 0:
            self._run.finish(FAILED)
            raise self._nothing(refused)
        self._run.finish(MEASURED)
        self._observer.run_ended(self._run, self._status())

    def _nothing(self, refused: Sequence[str]) -> BenchmarkFailed:
        if self._failure is not None:
            failure = self._failure
            return BenchmarkFailed(failure.name, failure.message, failure.hint, failure.exit_code)
        return BenchmarkFailed(
            "no_valid_trial",
            f"Not one of {self.trials} trials counts: {'; '.join(refused) or 'see the run'}.",
            f"`nephoscope show {self._run.id}` lists them with their reasons.",
        )


def _counts(record: TrialRecord) -> bool:
    return record.status is TrialStatus.VALID and record.key.round > 0


def _told(factors: Mapping[str, Any]) -> str:
    return "".join(f"{name}={level} " for name, level in factors.items())


def _machine_id(fingerprint: Mapping[str, Any]) -> str:
    identity = fingerprint.get("identity")
    found = identity.get("machine_id_hash") if isinstance(identity, dict) else None
    return found if isinstance(found, str) else ""


@contextlib.contextmanager
def _cancelled_by_signals() -> Iterator[None]:
    """Ctrl-C, SIGTERM and SIGHUP cancel the running task, so that everything is ended in order."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    installed = []
    for number in _SIGNALS:
        # Only the main thread may install handlers; elsewhere the owner cancels the task.
        with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):
            loop.add_signal_handler(number, task.cancel)
            installed.append(number)
    try:
        yield
    finally:
        for number in installed:
            loop.remove_signal_handler(number)
