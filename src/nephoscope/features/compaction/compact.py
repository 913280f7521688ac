"""Merges the summaries of old runs into day files, removes their trials, and limits the day files.

A run is first a folder and then a line of a day file: the line is written and synced before the
folder is removed, so that a kill at any moment loses and doubles nothing. `nephoscope watch` calls
`compact` after each repetition, `nephoscope compact` when the user asks.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from nephoscope.core.counting import counted
from nephoscope.core.errors import StoreError
from nephoscope.core.model import Shape
from nephoscope.features.compaction.reading import AGAINST, REPETITION
from nephoscope.features.compaction.summarise import summary_of
from nephoscope.store import RUNNING, Store, StoredRun, day_files, packing
from nephoscope.store.day_files import WATCH, DayFile, DayWriter
from nephoscope.store.files import translating_os_errors
from nephoscope.store.index import RunIndex
from nephoscope.store.summary import MetricSummary, RunMeasurements


@dataclass(frozen=True, slots=True)
class Policy:
    """How long to keep what; None keeps all.

    keep_raw_s: age of a run in seconds, from its start, at which its trials are removed. keep_s:
    age of a day, from its end, at which its day file is removed. max_size_bytes: size of the day
    files, beyond which the oldest day is removed first.
    """

    keep_raw_s: float | None = None
    keep_s: float | None = None
    max_size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class RemovedDay:
    """A day file that was removed. watch: value of the label, or empty."""

    day: str
    watch: str
    size_bytes: int
    reason: Literal["age", "size"]


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a compaction did, or would do (is_dry_run).

    compacted: ids of the runs whose trials were removed. freed_bytes: size of their folders.
    day_bytes: size of all day files afterwards; of those before in a dry run. skipped: a sentence
    for each run that is old enough but keeps its trials.
    """

    store: str
    is_dry_run: bool
    compacted: tuple[str, ...]
    freed_bytes: int
    removed_days: tuple[RemovedDay, ...]
    day_bytes: int
    skipped: tuple[str, ...]


def compact(
    store: Store,
    policy: Policy,
    *,
    watch: str | None = None,
    now_s: float | None = None,
    is_dry_run: bool = False,
) -> Compaction:
    """Applies a policy to a store and returns what was done.

    watch: only runs with this value of the label WATCH, and their day files; None for all of the
    store. now_s: seconds since the epoch [default: the clock]. Trials are kept of runs that are
    being measured or are damaged, and of repetitions and their runs, which `nephoscope history`
    judges again by their trials. Raises StoreError where another process compacts the store or a
    file cannot be written; what was not compacted by then is as it was.
    """
    now = time.time() if now_s is None else now_s
    work = _Work(store, policy, watch, now)
    if is_dry_run:
        work.plan()
    else:
        with day_files.locked(store.path), store.compacting():
            store.remove_leftovers()
            work.remove_old_days()  # first, since the disk may be full
            work.compact_runs()
            work.remove_old_days()
            work.limit_size()
    return Compaction(
        store.address,
        is_dry_run,
        tuple(work.compacted),
        work.freed_bytes,
        tuple(work.removed),
        sum(day_file.size_bytes for day_file in day_files.day_files(store.path, watch)),
        tuple(work.skipped),
    )


@dataclass(slots=True)
class _Work:
    store: Store
    policy: Policy
    watch: str | None
    now_s: float
    compacted: list[str] = field(default_factory=list)
    freed_bytes: int = 0
    removed: list[RemovedDay] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def plan(self) -> None:
        """Notes what would be done; the day files as they are now."""
        for run in self._old_runs():
            self.compacted.append(run.id)
            self.freed_bytes += _size_bytes(run.path)
        days = day_files.day_files(self.store.path, self.watch)
        old = [day for day in days if self._is_old(day)]
        self.removed += [_removed(day_file, "age") for day_file in old]
        rest = [day for day in days if not self._is_old(day)]
        self.removed += [_removed(day_file, "size") for day_file in self._beyond_size(rest)]

    def compact_runs(self) -> None:
        """Moves one run after the other from its folder into its day file."""
        writer = DayWriter(self.store.path)
        for run in self._old_runs():
            with contextlib.ExitStack() as held:
                try:
                    state = run.status
                    held.enter_context(run.lock())
                    measured = _intact_summary(run)
                except StoreError as error:
                    if run.path.exists():
                        self.skipped.append(f"Run {run.id} keeps its trials: {error}")
                    continue
                size_bytes = _size_bytes(run.path)
                writer.put(_for_day(replace(measured, state=state)))
                self.store.discard(run)
            self.compacted.append(run.id)
            self.freed_bytes += size_bytes

    def remove_old_days(self) -> None:
        """Removes the day files that are older than the policy keeps them."""
        for file in day_files.day_files(self.store.path, self.watch):
            if self._is_old(file):
                self._remove(file, "age")

    def limit_size(self) -> None:
        """Removes the oldest days until the others are within the policy's size."""
        for file in self._beyond_size(day_files.day_files(self.store.path, self.watch)):
            self._remove(file, "size")

    def _remove(self, file: DayFile, reason: Literal["age", "size"]) -> None:
        day_files.remove(self.store.path, file, reason)
        self.removed.append(_removed(file, reason))

    def _is_old(self, file: DayFile) -> bool:
        keep_s = self.policy.keep_s
        return keep_s is not None and file.ends_s < self.now_s - keep_s

    def _beyond_size(self, oldest_first: Sequence[DayFile]) -> Iterator[DayFile]:
        limit = self.policy.max_size_bytes
        total = sum(day_file.size_bytes for day_file in oldest_first)
        for file in oldest_first:
            if limit is None or total <= limit:
                return
            total -= file.size_bytes
            yield file

    def _old_runs(self) -> Iterator[StoredRun]:
        """Yields the runs whose trials are to be removed, oldest first."""
        keep_s = self.policy.keep_raw_s
        if keep_s is None:
            return
        listed = RunIndex(self.store).whole()
        if self.watch is None:
            self.skipped += listed.damaged
        runs = sorted(listed.runs, key=lambda run: (run.started_at_s, run.row.id))
        repeated = {run.row.labels.get(name) for run in runs for name in (REPETITION, AGAINST)}
        for run in counted(runs, "Compacting runs"):
            labels = run.row.labels
            is_chosen = self.watch is None or labels.get(WATCH, "") == self.watch
            # A run whose start is unknown would be in the file of a day on which it was not made.
            is_old = 0 < run.started_at_s < self.now_s - keep_s
            is_repetition = REPETITION in labels or AGAINST in labels
            if is_chosen and is_old and not is_repetition and run.row.id not in repeated:
                stored = StoredRun(self.store.runs_path / run.row.id)
                if run.row.state != RUNNING or stored.status != RUNNING:
                    yield stored


def _intact_summary(run: StoredRun) -> RunMeasurements:
    """Returns the summary of a run. StoreError where a file of it is damaged."""
    measured = summary_of(run)
    if measured.damaged:
        raise StoreError(
            measured.damaged[0], f"Repair it, or remove it: `nephoscope runs rm {run.id}`."
        )
    return measured


def _for_day(measurements: RunMeasurements) -> RunMeasurements:
    """Returns a summary as it stands in a day file: without stamp, long histograms rounded."""
    return replace(
        measurements, stamp="", metrics=tuple(map(_with_rounded_values, measurements.metrics))
    )


def _with_rounded_values(metric: MetricSummary) -> MetricSummary:
    if metric.shape is Shape.SCALAR:
        return metric
    trials = metric.histograms()
    if all(values.size <= packing.MAX_BUCKETS for values, _ in trials):
        return metric
    unanswered = packing.rounded(metric.unanswered(), trials) if metric.packed_unanswered else None
    return replace(
        metric,
        packed=packing.pack_histograms(packing.rounded(trials)),
        packed_unanswered=packing.pack_histograms(unanswered) if unanswered else "",
    )


def _removed(file: DayFile, reason: Literal["age", "size"]) -> RemovedDay:
    return RemovedDay(file.day, file.watch, file.size_bytes, reason)


def _size_bytes(folder: Path) -> int:
    with translating_os_errors(folder, "read"):
        return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
