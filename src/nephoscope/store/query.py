"""The queries that analyses ask of a run: one row a trial and metric, ordered.

Only trials that count are seen: valid, and of no warm-up round. A trial's file holds few enough
samples to group them in memory; see docs/decisions/0018-small-runs-answer-at-once.md.
"""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

from nephoscope.model import Shape

if TYPE_CHECKING:
    from nephoscope.store.run import StoredRun


@dataclass(frozen=True, slots=True)
class _TrialMetric:
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
class TrialValue(_TrialMetric):
    """One value of a scalar metric for one trial: the median of the trial's samples."""

    value: float


@dataclass(frozen=True, slots=True)
class TrialHistogram(_TrialMetric):
    """One histogram of one trial; values ascend, counts[i] belongs to values[i]."""

    values: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SeriesPoint(_TrialMetric):
    """One event or reading in time of one trial; at_ns since the trial began."""

    at_ns: int
    value: float
    count: int


_COLUMNS = ("benchmark", "metric", "target", "factors", "unit", "better")

Group = tuple[str, str, str, str, str, str, str, int]
"""The first eight fields of a row, which its samples share."""

Reading = tuple[int, float, int]
"""at_ns, value and count of one sample."""


def trial_medians(run: StoredRun) -> list[TrialValue]:
    """Returns every scalar metric of every trial that counts, ordered by metric, then round."""
    return [
        TrialValue(*group, value=statistics.median(value for _, value, _ in readings))
        for group, readings in _groups(run, Shape.SCALAR)
    ]


def histograms(run: StoredRun) -> list[TrialHistogram]:
    """Returns every histogram of every trial that counts, ordered by metric, then round."""
    rows = []
    for group, readings in _groups(run, Shape.HISTOGRAM):
        counts: Counter[float] = Counter()
        for _, value, count in readings:
            counts[value] += count
        values = tuple(sorted(counts))
        rows.append(TrialHistogram(*group, values, tuple(counts[value] for value in values)))
    return rows


def series(run: StoredRun) -> list[SeriesPoint]:
    """Returns every event of every trial that counts, ordered by metric, round and time."""
    return [
        SeriesPoint(*group, *reading)
        for group, readings in _groups(run, Shape.SERIES)
        for reading in sorted(readings)
    ]


def _groups(run: StoredRun, shape: Shape) -> list[tuple[Group, list[Reading]]]:
    """Returns the samples of each metric of a shape, by target, factors and trial."""
    metrics = set(run.metrics_of_shape(shape))
    groups: dict[Group, list[Reading]] = {}
    for record, table in run.samples():
        trial = (record.key.name, record.key.round)
        keys = zip(*(table[name].to_pylist() for name in _COLUMNS), strict=True)
        readings = zip(
            *(table[name].to_pylist() for name in ("at_ns", "value", "count")), strict=True
        )
        for key, reading in zip(keys, readings, strict=True):
            if key[:2] in metrics:
                groups.setdefault((*key, *trial), []).append(reading)
    by_round = itemgetter(0, 1, 2, 3, 7, 6)
    return sorted(groups.items(), key=lambda item: by_round(item[0]))
