"""What machines without a controller have stored, as trials of a run.

A batch has the output of each trial as the probe printed it. It is read, judged and stored by what
reads, judges and stores the output of a probe over a connection.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from nephoscope.catalog import Catalog
from nephoscope.core.errors import UsageError
from nephoscope.core.model import TrialStatus
from nephoscope.core.reading import jsontext
from nephoscope.core.records import dataclass
from nephoscope.measure import plans
from nephoscope.measure.plans import Plan
from nephoscope.measure.runs.observer import Observer
from nephoscope.measure.runs.recorder import Recorder
from nephoscope.measure.runs.schedule.headline import rows_of_table
from nephoscope.measure.runs.schedule.progress import Progress
from nephoscope.measure.runs.trials.phases import Phase
from nephoscope.measure.runs.trials.records import GroupResult, StoredTrial, make_records
from nephoscope.measure.runs.unattended_jobs import OPENING, JobTrial, batches_of
from nephoscope.measure.targets.base import TargetTrial
from nephoscope.measure.targets.channels.child import Ended
from nephoscope.measure.targets.probe.output import parse_output
from nephoscope.measure.targets.probe.process import trial_of
from nephoscope.measure.targets.probe.target import FINGERPRINT
from nephoscope.store import StoredRun

SKEW_S = 120.0
"""A machine's clock that differs by less from the bucket's is taken as it is: an object may be
stored so much after its last line was written."""


class UnreadableBatch(ValueError):
    """An object that is not what a machine wrote; the message is the end of a sentence."""


@dataclass(frozen=True, slots=True)
class ReturnedTrial:
    """A trial as its machine tells of it. started_at_s: by the machine's clock."""

    name: str
    started_at_s: float
    elapsed_ns: int
    ended: Ended


@dataclass(frozen=True, slots=True)
class ReturnedBatch:
    """A batch that is whole. sent_at_s: by the machine's clock, before it was sent first."""

    name: str
    machine: str
    sent_at_s: float
    trials: tuple[ReturnedTrial, ...]


def read_batch(content: bytes) -> ReturnedBatch:
    """Returns the trials of an object. Raises UnreadableBatch where a part of it is missing."""
    before, _, last = content.rstrip(b"\n").rpartition(b"\n")
    end = _line(last, "batch")
    before = before + b"\n" if before else b""
    if end is None or not content.endswith(b"\n"):
        raise UnreadableBatch("it has no last line, so that it was cut")
    if hashlib.sha256(before).hexdigest() != end.get("sha256"):
        raise UnreadableBatch("its SHA-256 is not the one in its last line")
    trials = []
    while before:
        head, _, before = before.partition(b"\n")
        trial = _line(head, "trial")
        if trial is None:
            raise UnreadableBatch("a line of it is none of a trial")
        length = int(trial["output_bytes"])
        code, why = int(trial["code"]), str(trial["why"])
        ended = Ended(code, before[:length], str(trial["stderr_tail"]), why)
        trials.append(
            ReturnedTrial(
                str(trial["name"]), float(trial["started_at_s"]), int(trial["elapsed_ns"]), ended
            )
        )
        before = before[length:]
    if len(trials) != end.get("trials"):
        raise UnreadableBatch("it has another number of trials than its last line says")
    return ReturnedBatch(
        str(end["name"]), str(end["machine"]), float(end["sent_at_s"]), tuple(trials)
    )


def _line(line: bytes, key: str) -> dict[str, Any] | None:
    """Returns the object under the only key of a line; None for any other line."""
    try:
        values = jsontext.parse(line)
    except ValueError:
        return None
    known = values.get(key) if isinstance(values, dict) else None
    needed = {
        "trial": ("name", "started_at_s", "elapsed_ns", "code", "why", "output_bytes",
                  "stderr_tail"),
        "batch": ("name", "machine", "sent_at_s", "trials", "sha256"),
    }[key]  # fmt: skip
    if not isinstance(known, dict) or not known.keys() >= set(needed):
        return None
    numbers = [value for value in known.values() if isinstance(value, int | float)]
    if not all(math.isfinite(value) and value < 2**63 for value in numbers):
        return None
    return known


def skew_s(pairs: Sequence[tuple[float, float]]) -> float:
    """Returns by how much a machine's clock is ahead of the bucket's, from pairs of a batch's
    `sent_at_s` and the moment at which the bucket had it; 0 below `SKEW_S`.

    Whatever delays an object makes its pair larger, so that the smallest difference counts.
    """
    ahead = -min((stored - sent for sent, stored in pairs), default=0.0)
    return ahead if abs(ahead) > SKEW_S else 0.0


@dataclass(frozen=True, slots=True)
class ConservedTrials:
    """Trials of the plan: planned = done + failed + missing. done: those with a result, of which
    `valid` count."""

    planned: int
    done: int
    valid: int
    failed: int

    @property
    def missing(self) -> int:
        """Returns how many have not arrived."""
        return self.planned - self.done - self.failed


class UnattendedRun:
    """A run whose trials arrive in batches, in any order and at any time."""

    def __init__(self, run: StoredRun, catalog: Catalog) -> None:
        manifest = run.manifest
        if (manifest.probe, manifest.protocol) != (catalog.probe, catalog.protocol):
            raise UsageError(
                f"Run {run.id} was begun with the probe {manifest.probe}, and this program has "
                f"{catalog.probe}.",
                f"Collect it with nephoscope {manifest.nephoscope}.",
            )
        self.run, self._catalog = run, catalog
        plan = plans.plan_of(run.id, manifest.plan)
        if plan is None:
            raise UsageError(f"Run {run.id} has no plan.", "It is no run of a fleet.")
        self._plan: Plan = plan
        settings = plans.expand(plan, catalog)
        self.batches = batches_of(plan, settings, catalog, manifest.seed or 0)
        stored = list(run.tables())
        self._known = {record.key.name: record for record, _ in stored}
        specs = {setting.benchmark: catalog.benchmark(setting.benchmark) for setting in settings}
        self._progress = Progress(plan, settings, specs)
        for record, table in stored:
            self._progress.add(record, rows_of_table(table))
        self._recorder = Recorder(
            run, plan, self._progress, Observer(), [record for record, _ in stored]
        )
        self._position = 1 + max((record.position for record, _ in stored), default=-1)
        self._planned = {
            trial.name: trial
            for batches in self.batches.values()
            for batch in batches
            for trial in batch.trials
            if trial.work is not None
        }

    def has(self, machine: str, batch: str) -> bool:
        """Returns whether a batch is in the run."""
        (known,) = (entry for entry in self.batches[machine] if entry.name == batch)
        if known.trials[0].name == OPENING:
            return machine in self.run.manifest.fingerprints
        return all(trial.name in self._known for trial in known.trials)

    def begin(self) -> None:
        """Says that results come in."""
        self._recorder.begin(resumed=True)

    def end(self) -> None:
        """Says that nothing more comes in for now; the run is not finished."""
        self.run.sync()
        self._recorder.note_end("collected so far")

    def add(self, batch: ReturnedBatch, ahead_s: float) -> None:
        """Stores the trials of a batch that are not there yet. ahead_s: by which the machine's
        clock is ahead. Raises UnreadableBatch for trials of no such plan."""
        names = {trial.name for trial in self._of_batch(batch)}
        records: list[StoredTrial] = []
        for returned in batch.trials:
            if returned.name not in names:
                raise UnreadableBatch(f"{returned.name[:60]!a} is no trial of it")
            if returned.name == OPENING:
                self._open(batch.machine, returned)
            elif returned.name not in self._known:
                records += self._records(self._planned[returned.name], returned, ahead_s)
        if records:
            self._recorder.keep(records)
            self._known |= {trial.record.key.name: trial.record for trial in records}

    def _of_batch(self, batch: ReturnedBatch) -> Sequence[JobTrial]:
        for known in self.batches.get(batch.machine, ()):
            if known.name == batch.name:
                return known.trials
        raise UnreadableBatch(f"there is no batch {batch.name[:40]!a} of {batch.machine[:40]!a}")

    def _open(self, machine: str, returned: ReturnedTrial) -> None:
        benchmark, metric = FINGERPRINT
        document = self._trial(benchmark, returned, 0.0).documents.get(metric)
        known = self.run.manifest.fingerprints
        self.run.update(
            fingerprints={**known, machine: document if isinstance(document, dict) else {}}
        )
        self.run.event({"event": "target_opened", "target": machine})

    def _trial(self, benchmark: str, returned: ReturnedTrial, timeout_s: float) -> TargetTrial:
        parse = partial(parse_output, self._catalog.benchmark(benchmark))
        return trial_of(benchmark, returned.ended, timeout_s, parse)

    def _records(
        self, planned: JobTrial, returned: ReturnedTrial, ahead_s: float
    ) -> list[StoredTrial]:
        assert planned.work is not None
        trial = self._trial(planned.benchmark, returned, planned.timeout_s)
        measured = GroupResult(
            trials={planned.work.group.targets[0]: trial},
            started_at=returned.started_at_s - ahead_s,
            elapsed_ns=returned.elapsed_ns,
            timeline={Phase.MEASURE: (0, returned.elapsed_ns)},
        )
        if ahead_s:
            side = "ahead" if ahead_s > 0 else "behind"
            measured.notes.append(
                f"The machine's clock was {abs(ahead_s):.0f} s {side} of the bucket's; the time of "
                "the trial is corrected by that."
            )
        accept = dict.fromkeys(planned.work.group.participants, self._plan.accept)
        made = make_records(
            planned.work,
            measured,
            self._catalog.benchmark(planned.benchmark),
            accept,
            position=self._position,
            spent_s=returned.elapsed_ns / 1e9,
        )
        self._position += len(made)
        return made

    def counts(self, machine: str = "") -> ConservedTrials:
        """Returns the trials of a machine, or of all."""
        planned = sum(
            1
            for trial in self._planned.values()
            if trial.work is not None and machine in ("", trial.work.group.targets[0])
        )
        statuses = Counter(
            record.status for record in self._known.values() if machine in ("", record.key.target)
        )
        valid, invalid = statuses[TrialStatus.VALID], statuses[TrialStatus.INVALID]
        return ConservedTrials(planned, valid + invalid, valid, statuses[TrialStatus.FAILED])

    def finish(self, lost: Mapping[str, str]) -> None:
        """Nothing more will come. lost: machines of which something is missing, and why. Raises
        BenchmarkFailed where no trial counts."""
        self._progress.end_round()
        for machine, why in lost.items():
            pairs = [
                (trial.work.group.setting.index, machine)
                for trial in self._planned.values()
                if trial.work is not None and trial.work.group.targets[0] == machine
            ]
            self._progress.lose(pairs, f"{machine} was lost: {why}")
        self._recorder.finish(lost, None)
