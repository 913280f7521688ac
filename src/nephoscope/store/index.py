"""A list of all runs, kept up to date by the identity of their files.

Of 10,000 runs hardly any changes between two looks. A run's manifest is another file when it was
replaced, and its trials and journal grow while it is measured; only what differs is read again,
newest runs first, for a bounded time per look. Of a run that is over only the manifest is looked
at. A file in the store keeps the list of these for the next process, which reads every run again
where the file is missing, damaged or of another version.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, field
from pathlib import Path
from sys import intern

from nephoscope import __version__
from nephoscope.core import limits
from nephoscope.core.errors import StoreError
from nephoscope.core.format_versions import RUN_LIST
from nephoscope.core.reading import regular
from nephoscope.core.records import dataclass
from nephoscope.store.files import write_atomically
from nephoscope.store.journal import parsed_line, with_checksum
from nephoscope.store.listing import StoredRunRow, row_of
from nephoscope.store.manifest import FAILED, FINISHED, RUNNING, RunManifest, has_types
from nephoscope.store.run import StoredRun
from nephoscope.store.selection import Selection
from nephoscope.store.store import Store

MAX_RUNS = 100_000
"""Newest runs that are listed; a row takes about 2 kB."""
POLL_INTERVAL_S = 1.0
STALE_S = 10.0
"""Age up to which a list is returned while a thread makes the next one."""
READ_TIME_S = 0.5
"""Seconds for which one look reads manifests; the next look reads the rest."""

FILE = ".index.jsonl"
_VERSION = f"{RUN_LIST.version} of {__version__}"
_SETTLED_NS = 2_000_000_000
"""Age of a manifest from which on another one cannot have the same time of change."""

Signature = tuple[int, ...]
"""Inodes, sizes and times of change of a run's files, those of the manifest first."""
_MANIFEST = 3


@dataclass(frozen=True, slots=True)
class IndexedRun:
    """A run of the list.

    signature: of its files. words: what a search looks in, case-folded. factors: names of what it
    varies. kinds: target -> kind. lost: target -> why it was given up. process: of this machine,
    that measures it now; None without.
    """

    row: StoredRunRow
    signature: Signature
    created_at_s: float
    started_at_s: float
    benchmarks: tuple[str, ...]
    factors: tuple[str, ...]
    kinds: Mapping[str, str]
    lost: Mapping[str, str]
    process: int | None
    budget_s: float | None
    words: str

    @property
    def is_over(self) -> bool:
        """States whether nothing of it but the manifest changes any more."""
        return self.row.state in (FINISHED, FAILED)

    def meets(self, selection: Selection) -> bool:
        """States whether the run meets every condition."""
        return selection.matches_values(
            labels=self.row.labels,
            targets=self.row.targets,
            benchmarks=self.benchmarks,
            started_s=self.started_at_s,
            status=lambda: self.row.state,
        )


Entry = IndexedRun | tuple[Signature, str]
"""A run, or the signature of one whose manifest cannot be read and a sentence on it."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The list at one moment. runs: newest first. total: folders of runs, read or not.

    damaged: a sentence for each run whose manifest cannot be read. number: counts the changes.
    """

    runs: tuple[IndexedRun, ...] = ()
    total: int = 0
    damaged: tuple[str, ...] = ()
    number: int = 0
    by_id: Mapping[str, IndexedRun] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """States whether every run was read."""
        return len(self.runs) + len(self.damaged) >= min(self.total, MAX_RUNS)

    @property
    def measured_here(self) -> IndexedRun | None:
        """Returns a run that a process of this machine measures now; None without."""
        return next((run for run in self.runs if run.process is not None), None)


class RunIndex:
    """The list of the runs of a store. Used by several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._folder = str(store.runs_path)
        self._lock = threading.Lock()
        self._path = Path(store.runs_path, FILE)
        self._known: dict[str, Entry] = {}
        self._saved: dict[str, Entry] | None = None
        """What the file in the store had."""
        self._snapshot = Snapshot()
        self._refreshed_s = -1e9

    @property
    def store(self) -> Store:
        """Returns the store."""
        return self._store

    def whole(self) -> Snapshot:
        """Returns the whole list, however long reading it takes, and keeps it in the store."""
        self._snapshot = self._read_store()
        while not self._snapshot.is_complete:
            self._snapshot = self._read_store()
        saved, settled = self._saved or {}, _settled(self._known.values())
        if len(saved) != len(settled) or any(run is not saved.get(run.row.id) for run in settled):
            # A store that cannot be written, such as an archive, is read each time.
            with contextlib.suppress(StoreError):
                _save(self._path, settled)
        return self._snapshot

    def snapshot(self, *, fresh: bool = False) -> Snapshot:
        """Returns the list. Nobody waits for a look at the files while the list is young enough.

        It is at most `STALE_S` old, with `fresh` at most `POLL_INTERVAL_S`.
        """
        known = self._snapshot
        age_s = time.monotonic() - self._refreshed_s
        if known.is_complete and age_s < POLL_INTERVAL_S:
            return known
        if known.is_complete and age_s < STALE_S and not fresh:
            threading.Thread(target=self._refresh, args=(False,), daemon=True).start()
            return known
        return self._refresh(True)

    def _refresh(self, wait: bool) -> Snapshot:
        """Looks at the files, or waits for the thread that does so now."""
        if not self._lock.acquire(blocking=wait):
            return self._snapshot
        try:
            age_s = time.monotonic() - self._refreshed_s
            if age_s >= POLL_INTERVAL_S or not self._snapshot.is_complete:
                self._snapshot = self._read_store()
                self._refreshed_s = time.monotonic()
            return self._snapshot
        finally:
            self._lock.release()

    def _read_store(self) -> Snapshot:
        until_s = time.monotonic() + READ_TIME_S
        if self._saved is None:
            self._known = self._saved = _load(self._path)
        ids = self._store.ids()
        known: dict[str, Entry] = {}
        same = len(ids) == self._snapshot.total
        for run_id in reversed(ids[-MAX_RUNS:]):
            before = self._known.get(run_id)
            if before is None and time.monotonic() > until_s:
                same = False
                continue
            entry = self._entry(run_id, before)
            if entry is not None:
                known[run_id] = entry
            same = same and entry is before
        self._known = known
        # The same object as before, so that what was made of it can be used again.
        return self._snapshot if same else _snapshot_of(known, len(ids), self._snapshot.number + 1)

    def _entry(self, run_id: str, before: Entry | None) -> Entry | None:
        path = f"{self._folder}/{run_id}"
        is_over = isinstance(before, IndexedRun) and before.is_over
        try:
            signature = _signature(path, is_over=is_over)
        except OSError:
            return self._store.absence(run_id)
        if isinstance(before, IndexedRun):
            known = before.signature[:_MANIFEST] if is_over else before.signature
            # The lock of a process that ends leaves no trace in the files.
            if known == signature and before.process is None:
                return before
        elif before is not None and before[0] == signature:
            return before
        try:
            return _read(StoredRun(Path(path)), signature)
        except StoreError as error:
            return signature, str(error)


def _signature(path: str, *, is_over: bool) -> Signature:
    """Returns what changes with a run; of one that is over, its manifest alone does."""
    manifest = (*_changes(f"{path}/manifest.json"),)
    if is_over and manifest:
        return manifest
    # A folder without a manifest is a damaged run, a link that leads nowhere too; no name is none.
    os.lstat(path)
    return (*manifest, *_changes(f"{path}/trials", f"{path}/journal.jsonl"))


def _changes(*paths: str) -> Iterator[int]:
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            continue
        yield from (status.st_ino, status.st_size, status.st_mtime_ns)


def _load(path: Path) -> dict[str, Entry]:
    """Returns the runs of a stored list; empty where there is none of this version."""
    try:
        head, *lines = regular.read_regular(path, limits.RUN_LIST_BYTES).splitlines()
        if parsed_line(head) != ({"index": _VERSION}, True):
            return {}
        return dict(map(_entry_of, lines))
    except (OSError, ValueError, LookupError, TypeError):
        return {}


def _entry_of(line: bytes) -> tuple[str, IndexedRun]:
    values, holds = parsed_line(line)
    if values is None or not holds:
        raise ValueError("a line is damaged")
    row = values["row"]
    if not has_types(row, {"id": str, "state": str, "targets": list, "labels": dict}):
        raise ValueError("a row cannot be read")
    row["targets"] = tuple(row["targets"])
    for name in ("signature", "benchmarks", "factors"):
        values[name] = tuple(values[name])
    values["row"] = StoredRunRow(**row)
    return values["row"].id, IndexedRun(**values, process=None)


def _settled(entries: Iterable[Entry]) -> list[IndexedRun]:
    """Returns the runs that are over; the others change."""
    settled_ns = time.time_ns() - _SETTLED_NS
    return [
        run
        for run in entries
        if isinstance(run, IndexedRun) and run.is_over and run.signature[2] < settled_ns
    ]


def _save(path: Path, runs: Iterable[IndexedRun]) -> None:
    lines = [with_checksum({"index": _VERSION})]
    for run in runs:
        values = asdict(run)
        del values["process"]
        lines.append(with_checksum(values))
    write_atomically(path, b"".join(lines), durable=False)


def _read(run: StoredRun, signature: Signature) -> IndexedRun:
    manifest = run.manifest
    holder = run.holder() if manifest.state == RUNNING else None
    row = row_of(run)
    return IndexedRun(
        row=row,
        signature=signature,
        created_at_s=float(manifest.created_at or 0),
        started_at_s=run.started_s,
        benchmarks=tuple(map(intern, manifest.benchmarks)),
        factors=tuple(
            {intern(str(name)) for setting in manifest.settings for name in setting["factors"]}
        ),
        kinds={
            intern(str(target["name"])): intern(str(target["kind"])) for target in manifest.targets
        },
        lost=manifest.lost,
        process=holder.pid if holder is not None and holder.here else None,
        budget_s=manifest.budget_s,
        words=_words(row, manifest),
    )


def _words(row: StoredRunRow, manifest: RunManifest) -> str:
    benchmarks = set(manifest.benchmarks)
    labels = (f"{key}={value}" for key, value in row.labels.items())
    return " ".join((row.id, row.plan or "", *row.targets, *benchmarks, *labels)).casefold()


def _snapshot_of(known: Mapping[str, Entry], total: int, number: int) -> Snapshot:
    runs = [entry for entry in known.values() if isinstance(entry, IndexedRun)]
    # Ids do not order the runs of one second.
    runs.sort(key=lambda run: (run.row.id[:15], run.created_at_s), reverse=True)
    damaged = tuple(entry[1] for entry in known.values() if not isinstance(entry, IndexedRun))
    return Snapshot(tuple(runs), total, damaged, number, {run.row.id: run for run in runs})
