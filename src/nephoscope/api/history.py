"""A metric of a store over time, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from nephoscope.api.tables import CHANGES, ESTIMATE, POINTS, values, with_factors
from nephoscope.core.errors import UsageError
from nephoscope.features.compaction.reading import StoredSummaries
from nephoscope.features.history import series
from nephoscope.features.history.records import ChangePoint, History, SeriesHistory
from nephoscope.features.history.result import HistorySettings
from nephoscope.features.history.stored import of_series
from nephoscope.report import notebook_html, wording
from nephoscope.stats.statistics.values import known_confidence
from nephoscope.store import Store
from nephoscope.store.selection import Selection


class MetricHistory:
    """A metric over time: one series for each setting and target, and the changes of each.

    notes: sentences on what is left out, and on series that are too short to test.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        untested = (
            f"{line.target}, {line.label}: {line.untested}"
            for line in history.series
            if line.untested
        )
        self.notes = (*history.notes, *untested)

    def table(self) -> pa.Table:
        """Returns one row for each run of each series, oldest first.

        Columns: benchmark, metric, target, run, at (UTC), value, low, high, unit, confidence, n,
        `factor_<name>`.
        """
        rows, factors = [], []
        for line in self._history.series:
            for point in line.points:
                rows.append(
                    {
                        **values(line, "benchmark", "metric"),
                        **values(point, "target", "run"),
                        **values(point.estimate, *ESTIMATE),
                        "at": round(point.at_s * 1e6),
                    }
                )
                factors.append(line.factors)
        return with_factors(rows, POINTS, factors)

    def changes(self) -> pa.Table:
        """Returns one row for each change point.

        shift: new level relative to the old where `unit` is `ratio`, else their difference, with
        its interval. Columns: benchmark, metric, target, run (first of the new level),
        previous_run, at (UTC), direction, status, shift, low, high, unit, confidence, n, sentence,
        `factor_<name>`.
        """
        rows, factors = [], []
        for line, change in self._changes():
            rows.append(
                {
                    **values(line, "benchmark", "metric", "target"),
                    **values(change, "run", "previous_run", "direction", "status", "sentence"),
                    **values(change.shift, *ESTIMATE[1:]),
                    "shift": change.shift.value,
                    "at": round(change.at_s * 1e6),
                }
            )
            factors.append(line.factors)
        return with_factors(rows, CHANGES, factors)

    def __repr__(self) -> str:
        counts = (
            f"{len(self._history.series)} series",
            wording.plural(sum(len(line.points) for line in self._history.series), "point"),
            wording.plural(len(list(self._changes())), "change point"),
        )
        return f"<MetricHistory {self._history.metric}: {', '.join(counts)}>"

    def _repr_html_(self) -> str:
        """Returns the newest value of each series and the sentences on changes for a notebook."""
        rows = [
            (
                line.target,
                line.label,
                str(len(line.points)),
                *wording.estimate_cells(line.points[-1].estimate)[:2],
            )
            for line in self._history.series
            if line.points
        ]
        sentences = [change.sentence for _, change in self._changes()]
        head = ("target", "metric", "runs", "newest value", "interval")
        return notebook_html.table(repr(self)[1:-1], head, rows, below=sentences)

    def _changes(self) -> Iterator[tuple[SeriesHistory, ChangePoint]]:
        for line in self._history.series:
            for change in line.changes:
                yield line, change


def metric_history(
    store: Store,
    metric: str,
    *,
    targets: Sequence[str],
    benchmarks: Sequence[str],
    labels: Mapping[str, str],
    **settings: Any,
) -> MetricHistory:
    """Returns the history of a metric of a store; settings: of HistorySettings."""
    chosen = HistorySettings(**settings)
    known_confidence(chosen.confidence)
    runs = StoredSummaries(store, Selection(labels=labels, benchmarks=frozenset(benchmarks)))
    every, notes = series.read(
        runs, metric, targets=targets, benchmarks=benchmarks, confidence=chosen.confidence
    )
    if not every:
        raise UsageError(
            f"No run in {store.address} has a usable result of {metric}. {' '.join(notes)}".strip(),
            "RunStore.runs() lists the runs.",
        )
    return MetricHistory(of_series(store, runs, every, [*notes, *runs.problems], metric, chosen))
