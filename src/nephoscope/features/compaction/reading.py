"""Iterates over what the runs of a store measured, by their summaries, compacted runs included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nephoscope.core.counting import counted
from nephoscope.core.errors import StoreError
from nephoscope.features.compaction import question
from nephoscope.features.compaction.summarise import stored_summary, summary_of
from nephoscope.store import RUNNING, Store, StoredRun, day_files, summary
from nephoscope.store.engines.question import Engine, size_of
from nephoscope.store.selection import Selection
from nephoscope.store.summary import RunMeasurements

REPETITION, AGAINST = "repeats", "repeats-against"
"""Labels of runs that repeat a measurement to confirm a change, which are no points of a series:
the run behind the change, and the one before it with which the repetition was interleaved."""


@dataclass(slots=True)
class StoredSummaries:
    """The summaries of the runs that meet a selection; each iteration reads them again, one by one.

    more: runs that are read whether or not they meet it. problems: sentences of the last iteration
    on manifests and lines of day files that cannot be read. engine: computes the summaries that the
    store lacks, before the first iteration; None for this process, one by one.
    """

    store: Store
    selection: Selection
    more: Sequence[StoredRun] = ()
    problems: list[str] = field(default_factory=list)
    engine: Engine | None = None
    _repetitions: list[StoredRun] | None = None

    def __iter__(self) -> Iterator[StoredRun | RunMeasurements]:
        """Yields runs, newest first, then those of day files.

        A run that is compacted meanwhile is then in a day file. One that cannot be read is yielded
        itself, so that its reader gets the error.
        """
        self.problems = []
        self._summarise()
        repetitions = []
        # A folder counts more than a line: a kill, or a compaction since, may have left both.
        there = set()
        for name in counted(self.store.ids()[::-1], "Reading runs"):
            run = StoredRun(self.store.runs_path / name)
            measured = self._of(run)
            if measured is not None or run.path.exists():
                there.add(name)
            if measured is None:
                continue
            labels = measured.labels if isinstance(measured, RunMeasurements) else {}
            if REPETITION in labels or AGAINST in labels:
                repetitions.append(run)
            yield measured
        self._repetitions = repetitions
        for measurements in day_files.summaries(self.store.path, self.problems, without=there):
            if self._matches(measurements):
                yield measurements

    def _summarise(self) -> None:
        """Has the engine compute what the store lacks, where that is worth its start."""
        engine, self.engine = self.engine, None
        if engine is None:
            return
        runs = [StoredRun(self.store.runs_path / name) for name in reversed(self.store.ids())]
        missing = [run for run in runs if not (run.path / summary.FILE).exists()]
        wanted = [run for run in missing if self._is_summarised(run)]
        try:
            if engine.is_worth(len(wanted), sum(map(size_of, wanted))):
                for _ in question.summaries(wanted, engine):
                    pass
        finally:
            engine.close()

    def _is_summarised(self, run: StoredRun) -> bool:
        try:
            return run.state != RUNNING and self.selection.matches(run)
        except StoreError:
            return False  # its reader gets the error

    def repetitions(self) -> list[StoredRun]:
        """Returns the runs that repeat a measurement."""
        if self._repetitions is None:
            for _ in self:
                pass
        return self._repetitions or []

    def _of(self, run: StoredRun) -> StoredRun | RunMeasurements | None:
        """Returns the summary of a run; None where it does not meet the selection.

        The manifest of a run whose summary is up to date is not read.
        """
        is_wanted = any(run.id == own.id for own in self.more)
        try:
            known = stored_summary(run)
            if known is not None:
                return known if is_wanted or self._matches(known) else None
            return summary_of(run) if is_wanted or self.selection.matches(run) else None
        except StoreError as error:
            if not run.path.exists():
                return None
            try:
                _ = run.manifest
            except StoreError:
                self.problems.append(str(error))
                return None
            return run

    def _matches(self, run: RunMeasurements) -> bool:
        return self.selection.matches_values(
            labels=run.labels,
            targets=list(run.targets),
            benchmarks=run.benchmarks,
            started_s=run.started_s,
            status=lambda: run.state,
        )
