"""One run in the store: its manifest, its journal, its trials."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nephoscope import catalog
from nephoscope.catalog import BenchmarkSpec
from nephoscope.errors import StoreError
from nephoscope.model import Sample, Shape, TrialRecord, TrialStatus
from nephoscope.store import journal
from nephoscope.store.digests import changed_reports
from nephoscope.store.files import (
    make_durable,
    recover,
    remove_leftovers,
    translating_os_errors,
    write_all_or_none,
)
from nephoscope.store.holder import Holder, holder_of
from nephoscope.store.journal import Journal, removed_event, stored_event
from nephoscope.store.manifest import (
    RUNNING,
    STATES,
    read_manifest,
    write_manifest,
)
from nephoscope.store.trial_folder import Integrity, TrialFile, TrialFiles, integrity_of

if TYPE_CHECKING:
    import pyarrow as pa

    from nephoscope.store.trialfile import Beside

NOT_STARTED: Final = "not started"
INTERRUPTED: Final = "interrupted"
KILLED: Final = "killed"
ABANDONED = (NOT_STARTED, INTERRUPTED, KILLED)
"""What a run whose manifest says `running` is while no process measures it; see `status`."""

SYNC_EVERY_S = 1.0
"""Trials of one second are synced to the disk together: a kill loses none of them, a power failure
at most these, and the same command measures them again. Synced one by one, they would take a tenth
of the time of a run of short trials."""


_RELEASE_S = 1.0
"""How long a lock without a living holder is waited for; a fork takes milliseconds."""


class StoredRun:
    """A run's folder: manifest.json, journal.jsonl, trials/*.parquet, report/."""

    def __init__(self, path: Path, run_id: str = "") -> None:
        self.path = path
        self._id = run_id
        self._manifest: dict[str, Any] | None = None
        self._files = TrialFiles()
        self._journal = Journal()
        self._unsynced: list[Path] = []
        self._synced_s = -math.inf

    @property
    def id(self) -> str:
        """The run's id, which is its folder's name once it has appeared in the store."""
        return self._id or self.path.name

    @property
    def manifest(self) -> Mapping[str, Any]:
        """What is known of the run as a whole; the keys are those of `Store.create`.

        Raises StoreError when the file is missing, damaged or of a newer version.
        """
        if self._manifest is None:
            self._manifest = read_manifest(self.path / "manifest.json")
        return self._manifest

    @property
    def state(self) -> str:
        """One of STATES, as the manifest has it."""
        return str(self.manifest["state"])

    @property
    def status(self) -> str:
        """The state, or one of ABANDONED where a running run is measured by nobody.

        The manifest of such a run still says `running`: after a kill nobody can change it.
        """
        if self.state != RUNNING or self.holder() is not None:
            return self.state
        if not any(self.trials_path.glob("[rw]*.parquet")):
            return NOT_STARTED
        sessions = [
            event["event"]
            for event in self.events()
            if event.get("event") in ("session_started", "session_ended")
        ]
        return INTERRUPTED if sessions and sessions[-1] == "session_ended" else KILLED

    @property
    def trials_path(self) -> Path:
        """The folder of the trial files."""
        return self.path / "trials"

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

    @property
    def _specs(self) -> catalog.Catalog:
        specs = {"probe": "", "protocol": 0, "benchmarks": self.manifest["specs"]}
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

    def update(self, **changes: Any) -> None:
        """Changes keys of the manifest, durably."""
        self.sync()
        remove_leftovers(self.path)  # of a process that was killed while it did this
        manifest = {**self.manifest, **changes}
        write_manifest(self.path, manifest)
        self._manifest = manifest

    def finish(self, state: str) -> None:
        """Sets the state; `finished_at` is the moment at which measuring ended."""
        if state not in STATES:
            raise ValueError(f"{state} is no state of a run")
        changes: dict[str, Any] = {"state": state, "journal": journal.extent(self.journal_path)}
        if not self.manifest.get("finished_at"):
            changes["finished_at"] = datetime.now(UTC).timestamp()
        self.update(**changes)

    def append(
        self,
        record: TrialRecord,
        samples: Sequence[Sample],
        spec: BenchmarkSpec,
        beside: Sequence[Beside] = (),
    ) -> None:
        """Stores one finished trial; afterwards no kill can take it away.

        beside: samples of loads and hooks, kept as rows of their own benchmarks.
        """
        self.append_together([(record, samples, spec, beside)])

    def append_together(
        self,
        trials: Sequence[tuple[TrialRecord, Sequence[Sample], BenchmarkSpec, Sequence[Beside]]],
    ) -> None:
        """Stores trials that belong together: a kill leaves all of them, or none."""
        from nephoscope.store import trialfile

        files = {
            f"{record.key.name}.parquet": trialfile.encode(self.id, record, samples, spec, beside)
            for record, samples, spec, beside in trials
        }
        write_all_or_none(self.trials_path, files, durable=False)
        self.event(stored_event(files))
        self._unsynced += [self.trials_path / name for name in files]
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
        return [file.record for file in self._look()]

    def tables(self) -> list[tuple[TrialRecord, pa.Table]]:
        """All readable trials with their samples, in the order of execution."""
        return [file.read() for file in self._look() if file.readable]

    def integrity(self) -> Integrity:
        """Returns which trials are as they were stored; reads every file."""
        more = [*self.journal_problems(), *changed_reports(self.report_path)]
        return integrity_of(self._look(), more)

    def samples(self) -> Sequence[tuple[TrialRecord, pa.Table]]:
        """Returns the samples of the trials that count (columns: trialfile.SCHEMA)."""
        return [(record, table) for record, table in self.tables() if counts(record)]

    def metrics_of_shape(self, shape: Shape) -> list[tuple[str, str]]:
        """(benchmark, metric) of every metric of a shape."""
        return [
            (spec.id, metric.id)
            for spec in self._specs.benchmarks.values()
            for metric in spec.metrics
            if metric.shape is shape
        ]

    def event(self, event: Mapping[str, Any]) -> None:
        """Adds one line to the journal, with the time. For people; decisions rest on the trials."""
        journal.append(self.journal_path, event)

    def events(self) -> list[dict[str, Any]]:
        """The journal's events in order; a line that was cut off is left out."""
        return self._journal.read(self.journal_path).events()

    def journal_problems(self) -> list[str]:
        """Returns a sentence for what is damaged in the journal."""
        read = self._journal.read(self.journal_path)
        return read.problems(self.journal_path, self.manifest.get("journal"))

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keeps every other process from measuring this run, and completes what a kill left.

        Raises StoreError when another process has the lock.
        """
        with self.hold():
            recover(self.trials_path)
            remove_leftovers(self.path)
            remove_leftovers(self.trials_path)
            self._adopt()
            # Another process may have gone on with the run before we got the lock.
            self.reread()
            yield
            self.sync()

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Holds the lock alone, of a damaged run too; the kernel ends it with this process."""
        with translating_os_errors(self.journal_path, "opened"):
            descriptor = os.open(self.journal_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            self._take_lock(descriptor)
            yield
        finally:
            os.close(descriptor)

    def _take_lock(self, descriptor: int) -> None:
        """Locks the journal, after a killed holder's last child has let go of it.

        A child has the lock too from its fork to its exec, and outlives its parent by that long;
        whoever asks for the holder has it for a moment.
        """
        until_s = time.monotonic() + _RELEASE_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                    return  # a file system without locks: two at once are the user's care
                holder = self.holder()
                if (holder and holder.here) or time.monotonic() > until_s:
                    raise self._busy() from error
                time.sleep(0.01)
            else:
                return

    def holder(self) -> Holder | None:
        """The process that measures this run now; None when none does."""
        return holder_of(self.journal_path, self.events())

    def _busy(self) -> StoreError:
        pids = [
            event.get("pid") for event in self.events() if event.get("event") == "session_started"
        ]
        who = f"process {pids[-1]}" if pids else "another process"
        return StoreError(
            f"Run {self.id} is being measured by {who}.",
            f"Wait for it to end, or end it with `nephoscope stop {self.id}`.",
        )

    def _adopt(self) -> None:
        """Notes the digests of whole trials that a kill kept out of the journal."""
        looked = self._look()
        if not any(file.digest for file in looked):
            return  # new, or of a version without digests: nobody knows what was stored
        for file in looked:
            if file.readable and not file.digest:
                self.event(stored_event({file.path.name: file.path.read_bytes()}))

    def _look(self) -> list[TrialFile]:
        digests = self._journal.read(self.journal_path).digests()
        return self._files.look(self.trials_path, digests, self.manifest["settings"])


def counts(record: TrialRecord) -> bool:
    """Whether the analysis may use a trial: valid, and of no warm-up round."""
    return record.status is TrialStatus.VALID and record.key.round > 0
