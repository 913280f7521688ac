"""One run in the store: its manifest, its journal, its trials."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope import catalog
from nephoscope.catalog import BenchmarkSpec, MetricSpec
from nephoscope.core import limits
from nephoscope.core.errors import StoreError
from nephoscope.core.model import Sample, Shape, TrialRecord, TrialStatus
from nephoscope.core.reading import regular
from nephoscope.store import journal, merging
from nephoscope.store.batch import Batch
from nephoscope.store.digests import changed_reports, digest_of
from nephoscope.store.files import make_durable, recover, remove_leftovers, write_all_or_none
from nephoscope.store.holder import NOT_STARTED, Holder, holder_of, left_state, locked
from nephoscope.store.journal import Journal, removed_event, stored_event
from nephoscope.store.manifest import (
    RUNNING,
    STATES,
    RunManifest,
    read_manifest,
    write_manifest,
)
from nephoscope.store.run_folder import RunFolder
from nephoscope.store.trial_folder import Integrity, TrialFile, TrialFiles, batches_of

if TYPE_CHECKING:
    import pyarrow as pa

    from nephoscope.store.trialfile import AuxiliarySamples, MeasuredTrial

BATCH_TRIALS = 1024
"""Trials of a new run that become one table: a table takes 50 µs, however small it is."""
SYNC_EVERY_S = 1.0
"""Trials of one second are synced to the disk together: a kill loses none of them, a power failure
at most these, and the same command measures them again. Synced one by one, they would take a tenth
of the time of a run of short trials."""


class StoredRun(RunFolder):
    """A run's folder: manifest.json, journal.jsonl, trials/, report/."""

    def __init__(self, path: Path, run_id: str = "") -> None:
        super().__init__(path)
        self._id = run_id
        self._manifest: RunManifest | None = None
        self._files = TrialFiles()
        self._journal = Journal()
        self._since = Journal()
        """The journal since the last part was written."""
        self._unsynced: list[Path] = []
        self._synced_s = -math.inf

    @property
    def id(self) -> str:
        """The run's id, which is its folder's name once it has appeared in the store."""
        return self._id or self._path.name

    @property
    def manifest(self) -> RunManifest:
        """What is known of the run as a whole.

        Raises StoreError when the file is missing, damaged or of a newer version.
        """
        if self._manifest is None:
            self._manifest = read_manifest(self.path / "manifest.json")
        return self._manifest

    @property
    def labels(self) -> Mapping[str, str]:
        """The run's labels."""
        return self.manifest.labels

    @property
    def started_s(self) -> float:
        """When measuring began, in seconds since the epoch; 0 where it is not known."""
        return float(self.manifest.started_at or 0)

    @property
    def state(self) -> str:
        """One of STATES, as the manifest has it."""
        return self.manifest.state

    @property
    def status(self) -> str:
        """The state, or one of ABANDONED where a running run is measured by nobody.

        The manifest of such a run still says `running`: after a kill nobody can change it.
        """
        if self.state != RUNNING or self.holder() is not None:
            return self.state
        if not self.trial_count():
            return NOT_STARTED
        return left_state(self.events())

    @property
    def trials_path(self) -> Path:
        """The folder of the trial files."""
        return self.path / "trials"

    def trial_count(self, *, with_warmup: bool = True) -> int:
        """Returns how many trials are stored; reads none of them, but after a kill."""
        files = {path.stem for path in self.trials_path.glob("[rw]*.parquet")}
        if self._merged and files:
            return sum(with_warmup or file.record.key.round > 0 for file in self._read_files())
        if self._merged:
            warmup = 0 if with_warmup else self._merged["warmup"]
            return int(self._merged["trials"] - warmup)
        return sum(with_warmup or name.startswith("r") for name in files)

    @property
    def _merged(self) -> Mapping[str, Any]:
        """The manifest's entry on parts; empty for a run whose trials have files of their own."""
        return self.manifest.merged_trials or {}

    @property
    def journal_path(self) -> Path:
        """The file of the events."""
        return self.path / "journal.jsonl"

    @property
    def report_path(self) -> Path:
        """The folder into which reports are written."""
        return self.path / "report"

    def spec(self, benchmark: str) -> BenchmarkSpec:
        """The declaration of a benchmark as it was when the run began (imports have their own)."""
        return self._specs.benchmark(benchmark)

    @cached_property
    def _specs(self) -> catalog.Catalog:
        specs = {"probe": "", "protocol": 0, "benchmarks": self.manifest.specs}
        try:
            return catalog.parse(specs)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise StoreError(
                f"{self.path / 'manifest.json'} is damaged: its benchmarks cannot be read.",
                "Its trial files can be read by any Parquet reader.",
            ) from error

    def reread(self) -> None:
        """Forgets the manifest, which another process may have changed since it was read."""
        self._manifest = None
        for name in ("_specs", "_by_name"):
            self.__dict__.pop(name, None)

    def release(self) -> None:
        """Forgets all that was read; who asks again, reads again."""
        self.reread()
        self._files, self._journal, self._since = TrialFiles(), Journal(), Journal()

    def update(self, **changes: Any) -> None:
        """Changes keys of the manifest, durably."""
        self.sync()
        remove_leftovers(self.path)  # of a process that was killed while it did this
        manifest = self.manifest.changed(changes)
        write_manifest(self.path, manifest)
        self._manifest = manifest

    def finish(self, state: str) -> None:
        """Sets the state; `finished_at` is the moment at which measuring ended.

        The trials of a run that ends are merged, unless one is damaged or of an earlier version.
        """
        if state not in STATES:
            raise ValueError(f"{state} is no state of a run")
        changes: dict[str, Any] = {"state": state}
        if self.state == RUNNING and state != RUNNING:
            changes |= merging.merge_ended(self, self._read_files())
        changes["journal"] = journal.extent(self.journal_path)
        if not self.manifest.finished_at:
            changes["finished_at"] = datetime.now(UTC).timestamp()
        self.update(**changes)
        self._remove_unused()

    def store_all(self, trials: Sequence[MeasuredTrial]) -> None:
        """Stores all trials of a new run at once, merged; see `append` for what a trial has."""
        from nephoscope.store import trialfile

        batches = (
            trialfile.together(self.id, trials[first : first + BATCH_TRIALS])
            for first in range(0, len(trials), BATCH_TRIALS)
        )
        self.update(**merging.merge(self, batches, [record.key.name for record, *_ in trials]))

    def _remove_unused(self) -> None:
        merging.remove_unused(self.trials_path, self._read_files if self._merged else None)

    def append(
        self,
        record: TrialRecord,
        samples: Sequence[Sample],
        spec: BenchmarkSpec,
        auxiliary: Sequence[AuxiliarySamples] = (),
    ) -> None:
        """Stores one finished trial; afterwards no kill can take it away.

        auxiliary: samples of loads and hooks, kept as rows of their own benchmarks.
        """
        self.append_together([(record, samples, spec, auxiliary)])

    def append_together(self, trials: Sequence[MeasuredTrial]) -> None:
        """Stores trials that belong together: a kill leaves all of them, or none."""
        from nephoscope.store import trialfile

        files = {
            f"{record.key.name}.parquet": trialfile.encode(
                self.id, record, samples, spec, auxiliary
            )
            for record, samples, spec, auxiliary in trials
        }
        write_all_or_none(self.trials_path, files, durable=False)
        self.event(stored_event(files))
        paths = [self.trials_path / name for name in files]
        for path, content, (record, *_) in zip(paths, files.values(), trials, strict=True):
            self._files.add(path, digest_of(content), record)
        self._unsynced += paths
        if time.monotonic() - self._synced_s >= SYNC_EVERY_S:
            self.sync()

    def sync(self) -> None:
        """Makes the trials stored so far survive a power failure, too."""
        unsynced, self._unsynced, self._synced_s = self._unsynced, [], time.monotonic()
        try:
            make_durable(unsynced)
        except StoreError:
            gone = [path.name for path in unsynced if not path.exists()]
            with contextlib.suppress(StoreError):
                self.event(removed_event(gone))
            raise

    def records(self) -> list[TrialRecord]:
        """All finished trials in the order of execution.

        A file that cannot be read yields an invalid record with failure_name `file_damaged` and
        position -1 (these come first).
        """
        return [file.record for file in self._read_files()]

    def tables(self) -> Iterator[tuple[TrialRecord, pa.Table]]:
        """Yields all readable trials with their samples, in the order of execution."""
        for batch in self.batches():
            yield from batch.split()

    def batches(
        self, columns: Sequence[str] | None = None, share: tuple[int, int] = (0, 1)
    ) -> Iterator[Batch]:
        """Yields the samples of all readable trials in the order of execution, many at once.

        columns: see `trial_folder.batches_of`. share: (i, k) for part i of k of the trials, from 0.
        Holds one batch at a time.
        """
        files = [file for file in self._read_files() if file.readable]
        first, end = (len(files) * (share[0] + i) // share[1] for i in (0, 1))
        left = {file.record.key: file for file in files[first:end]}
        while True:
            try:
                for batch in batches_of([*left.values()], columns):
                    yield batch
                    for record, _ in batch.trials:
                        del left[record.key]
            except StoreError:
                if not self._was_merged_meanwhile():
                    raise
                left = {
                    file.record.key: file for file in self._read_files() if file.record.key in left
                }
            else:
                return

    def trial(self, name: str, digest: str = "") -> tuple[TrialRecord, pa.Table]:
        """Returns a trial with its samples. digest: of its file, where it has one and it is known.

        Reads no other trial while the run is measured. Raises StoreError for one that is damaged.
        """
        from nephoscope.store import trialfile

        self.bring_samples()
        if not self._merged:
            try:
                return trialfile.read(self.trials_path / f"{name}.parquet", digest)
            except StoreError:
                if not self._was_merged_meanwhile():
                    raise
        file = self._by_name.get(name)
        if file is None or not file.readable:
            raise StoreError(file.record.reasons[0] if file else f"There is no trial {name}.")
        (batch,) = batches_of([file])
        return next(batch.split())

    @cached_property
    def _by_name(self) -> dict[str, TrialFile]:
        return {file.record.key.name: file for file in self._read_files()}

    def integrity(self) -> Integrity:
        """Returns which trials are as they were stored; reads every file."""
        files = self._read_files()
        reasons = [reason for file in files if not file.readable for reason in file.record.reasons]
        return Integrity(
            verified=sum(file.readable and bool(file.digest) for file in files),
            unverified=sum(file.readable and not file.digest for file in files),
            damaged=(
                *reasons,
                *self._files.problems,
                *self.journal_problems(),
                *changed_reports(self.report_path),
            ),
        )

    def metrics_of_shape(self, shape: Shape) -> dict[tuple[str, str], MetricSpec]:
        """(benchmark, metric) of every metric of a shape -> its declaration."""
        return {
            (spec.id, metric.id): metric
            for spec in self._specs.benchmarks.values()
            for metric in spec.metrics
            if metric.shape is shape
        }

    def event(self, event: Mapping[str, Any]) -> None:
        """Adds one line to the journal, with the time. For people; decisions rest on the trials."""
        journal.append(self.journal_path, event)

    def events(self) -> list[dict[str, Any]]:
        """The journal's events in order; a line that was cut off is left out."""
        return self._journal.read(self.journal_path).events()

    def journal_problems(self) -> list[str]:
        """Returns a sentence for what is damaged in the journal."""
        read = self._journal.read(self.journal_path)
        return read.problems(self.journal_path, self.manifest.journal)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keeps every other process from measuring this run, and completes what a kill left.

        Raises StoreError when another process has the lock. On object storage, what changed is
        published when the block ends.
        """
        with self.hold(), self.publishing():
            recover(self.trials_path)
            remove_leftovers(self.path)
            remove_leftovers(self.trials_path)
            # Another process may have gone on with the run before we got the lock.
            self.reread()
            self._remove_unused()
            self._adopt()
            yield
            self.sync()
        if self._mirror is not None:
            self.reread()  # labels of other machines may have been put together with these

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Holds the lock alone, of a damaged run too; the kernel ends it with this process."""
        with locked(self.id, self.journal_path, self.events):
            yield

    def holder(self) -> Holder | None:
        """The process that measures this run now; None when none does."""
        return holder_of(self.journal_path, self.events())

    def _adopt(self) -> None:
        """Notes the digests of whole trials that a kill kept out of the journal."""
        looked = self._read_files()
        if not any(file.digest for file in looked):
            return  # new, or of a version without digests: nobody knows what was stored
        for file in looked:
            if file.readable and not file.digest:
                self.event(
                    stored_event(
                        {file.path.name: regular.read_regular(file.path, limits.TRIAL_FILE_BYTES)}
                    )
                )

    def _read_files(self) -> list[TrialFile]:
        files = self._read_files_once()
        if any(file.is_missing for file in files) and self._was_merged_meanwhile():
            return self._read_files_once()
        return files

    def _read_files_once(self) -> list[TrialFile]:
        self.bring_samples()
        merged = self._merged
        if merged and self._since.start != merged["journal_bytes"]:
            self._since = Journal(merged["journal_bytes"])
        events = self._since if merged else self._journal
        return self._files.read(
            self.trials_path,
            events.read(self.journal_path).digests(),
            self.manifest.settings,
            merged,
            lambda: self._journal.read(self.journal_path).merged(),
        )

    def _was_merged_meanwhile(self) -> bool:
        """States whether the process that measures has ended the run since it was read."""
        if self._merged:
            return False
        self.reread()
        return bool(self._merged)


def counts(record: TrialRecord) -> bool:
    """Whether the analysis may use a trial: valid, and of no warm-up round."""
    return record.status is TrialStatus.VALID and record.key.round > 0
