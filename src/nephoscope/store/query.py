"""The queries that analyses ask of a run: one row a trial and metric, ordered.

Unless asked otherwise, only trials that count are seen: valid, and of no warm-up round. A run holds
few enough samples of the metrics asked for to group them in memory; see
docs/decisions/0018-small-runs-answer-at-once.md.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

from nephoscope.core.model import Shape

if TYPE_CHECKING:
    from nephoscope.core.model import TrialRecord
    from nephoscope.store.run import StoredRun


@dataclass(frozen=True, slots=True)
class TrialMetric:
    """A metric of one trial. factors: canonical JSON text (model.factors_key)."""

    benchmark: str
    metric: str
    target: str
    factors: str
    unit: str
    better: str
    trial: str
    round: int


@dataclass(frozen=True, slots=True)
class TrialValue(TrialMetric):
    """One value of a scalar metric for one trial: the median of the trial's samples."""

    value: float


@dataclass(frozen=True, slots=True)
class TrialHistogram(TrialMetric):
    """One histogram of one trial; values ascend, counts[i] belongs to values[i]."""

    values: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SeriesPoint(TrialMetric):
    """One event or reading in time of one trial; at_ns since the trial began."""

    at_ns: int
    value: float
    count: int


_COLUMNS = ("benchmark", "metric", "target", "factors", "unit", "better")
_READING = ("at_ns", "value", "count")
_READ = (*_COLUMNS, *_READING)

Group = tuple[str, str, str, str, str, str, str, int]
"""The first eight fields of a row, which its samples share."""

Reading = tuple[int, float, int]
"""at_ns, value and count of one sample."""

Wanted = Callable[[str, str], bool] | None
"""States whether a metric of a benchmark is asked for; None for all of them."""

Trials = Callable[["TrialRecord"], bool] | None
"""States whether a trial is asked for; None for those that count."""


def trial_medians(run: StoredRun, only: Wanted = None, trials: Trials = None) -> list[TrialValue]:
    """Returns the scalar metrics of every trial asked for, ordered by metric, then round."""
    return [
        TrialValue(*group, value=statistics.median(value for _, value, _ in readings))
        for group, readings in _groups(run, Shape.SCALAR, only, trials)
    ]


def histograms(run: StoredRun, only: Wanted = None, trials: Trials = None) -> list[TrialHistogram]:
    """Returns the histograms of every trial asked for, ordered by metric, then round."""
    rows = []
    for group, readings in _groups(run, Shape.HISTOGRAM, only, trials):
        counts: Counter[float] = Counter()
        for _, value, count in readings:
            counts[value] += count
        values = tuple(sorted(counts))
        rows.append(TrialHistogram(*group, values, tuple(counts[value] for value in values)))
    return rows


def series(run: StoredRun, only: Wanted = None) -> list[SeriesPoint]:
    """Returns the events of every trial that counts, ordered by metric, round and time."""
    return [
        SeriesPoint(*group, *reading)
        for group, readings in _groups(run, Shape.SERIES, only)
        for reading in sorted(readings)
    ]


def _groups(
    run: StoredRun, shape: Shape, only: Wanted, wanted_trials: Trials = None
) -> list[tuple[Group, list[Reading]]]:
    """Returns the samples of each metric of a shape, by target, factors and trial."""
    from nephoscope.store.run import counts
    from nephoscope.store.trialfile import column_lists

    is_wanted = wanted_trials or counts
    metrics = {key for key in run.metrics_of_shape(shape) if only is None or only(*key)}
    groups: dict[Group, list[Reading]] = {}
    for batch in run.batches(_READ) if metrics else ():
        trials: list[tuple[str, int] | None] = []
        for record, rows in batch.trials:
            trial = (record.key.name, record.key.round) if is_wanted(record) else None
            trials += [trial] * rows
        keys = zip(*column_lists(batch.table, _COLUMNS), strict=True)
        readings = zip(*column_lists(batch.table, _READING), strict=True)
        for trial, key, reading in zip(trials, keys, readings, strict=True):
            if trial is not None and key[:2] in metrics:
                groups.setdefault((*key, *trial), []).append(reading)
    by_round = itemgetter(0, 1, 2, 3, 7, 6)
    return sorted(groups.items(), key=lambda item: by_round(item[0]))
