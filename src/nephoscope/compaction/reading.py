"""Iterates over the runs of a store and the summaries of those that were compacted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nephoscope.compaction.summarise import summary_of
from nephoscope.errors import StoreError
from nephoscope.store import Store, StoredRun, day_files
from nephoscope.store.selection import Selection
from nephoscope.store.summary import RunSummary


@dataclass(slots=True)
class StoredSummaries:
    """Runs, and the compacted runs that meet a selection; each iteration reads them again.

    runs: those that meet it, with their trials. problems: sentences on damaged lines of day files.
    """

    store: Store
    runs: Sequence[StoredRun]
    selection: Selection
    problems: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[StoredRun | RunSummary]:
        """Yields the runs first: one that is compacted meanwhile is then in a day file.

        A run that cannot be read is yielded itself, so that its reader gets the error.
        """
        read = set()
        for run in self.runs:
            try:
                own = summary_of(run)
            except StoreError:
                if run.path.exists():  # else it was compacted meanwhile
                    yield run
                continue
            read.add(run.id)
            yield own
        self.problems = []
        # A folder counts more than a line: a kill may have left both.
        stored = read.union(self.store.ids())
        for one in day_files.summaries(self.store.path, self.problems, without=stored):
            if self.selection.matches_values(
                labels=one.labels,
                targets=list(one.targets),
                benchmarks=one.benchmarks,
                started_s=one.started_s,
                status=lambda one=one: one.state,  # type: ignore[misc]
            ):
                yield one
