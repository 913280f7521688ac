"""The queries that analyses ask of a run: one row a trial and metric, ordered.

Unless asked otherwise, only trials that count are seen: valid, and of no warm-up round. Trials of
generators that share a load are one trial, under the name of all of them (shared_loads.py). A trial
lies in one batch, so that the rows of one batch are held at a time; they are sorted and grouped as
columns (docs/decisions/0018-small-runs-answer-at-once.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from nephoscope.core.model import Shape
from nephoscope.store.grouped_samples import READ, READ_IN_TIME, BatchSamples, GroupedSamples
from nephoscope.store.shared_loads import WEIGHTS, SharedLoads
from nephoscope.store.trial_rows import Integers as Integers
from nephoscope.store.trial_rows import SeriesPoint as SeriesPoint
from nephoscope.store.trial_rows import TrialHistogram as TrialHistogram
from nephoscope.store.trial_rows import TrialMetric as TrialMetric
from nephoscope.store.trial_rows import TrialValue as TrialValue
from nephoscope.store.trial_rows import Values as Values

if TYPE_CHECKING:
    from nephoscope.core.model import TrialRecord
    from nephoscope.store.run import StoredRun


Wanted = Callable[[str, str], bool] | None
"""States whether a metric of a benchmark is asked for; None for all of them."""

Trials = Callable[["TrialRecord"], bool] | None
"""States whether a trial is asked for; None for those that count."""

ALL = (0, 1)
"""Share of the trials that is read: part i of k, see `StoredRun.batches`."""
_NO_TRIALS = (0, 2**62)
"""Share of a run in which no trial lies."""


def trial_medians(
    run: StoredRun, only: Wanted = None, trials: Trials = None, share: tuple[int, int] = ALL
) -> list[TrialValue]:
    """Returns the scalar metrics of every trial asked for, ordered by metric, then round."""
    return medians_and_histograms(run, only, trials, share, [Shape.SCALAR])[0]


def histograms(
    run: StoredRun, only: Wanted = None, trials: Trials = None, share: tuple[int, int] = ALL
) -> list[TrialHistogram]:
    """Returns the histograms of every trial asked for, ordered by metric, then round."""
    return medians_and_histograms(run, only, trials, share, [Shape.HISTOGRAM])[1]


def medians_and_histograms(
    run: StoredRun,
    only: Wanted = None,
    trials: Trials = None,
    share: tuple[int, int] = ALL,
    shapes: Sequence[Shape] = (Shape.SCALAR, Shape.HISTOGRAM),
) -> tuple[list[TrialValue], list[TrialHistogram]]:
    """Returns `trial_medians` and `histograms`, those of other shapes empty; reads once."""
    medians: list[TrialValue] = []
    distributions: list[TrialHistogram] = []
    shared, share = _shared_loads(run, trials, share)
    wanted = _with_weights(only) if shared else only
    for shape, grouped in _groups(run, shapes, wanted, trials, share):
        if shape is Shape.SCALAR:
            medians += _medians_of(grouped)
        else:
            distributions += _histograms_of(grouped)
    if shared:
        medians = [
            row for row in shared.values(medians) if only is None or only(row.benchmark, row.metric)
        ]
        distributions = list(shared.histograms(distributions))
    return sorted(medians, key=_by_round), sorted(distributions, key=_by_round)


def _medians_of(grouped: GroupedSamples) -> Iterator[TrialValue]:
    begins, values = grouped.begins, grouped.values
    low, high = (begins[:-1] + begins[1:] - 1) // 2, (begins[:-1] + begins[1:]) // 2
    # The middle one is not added to itself and halved, which overflows beyond 8.9e307.
    middle = np.where(low == high, values[low], (values[low] + values[high]) / 2)
    for key, value in zip(grouped.keys, middle.tolist(), strict=True):
        yield TrialValue(*key, value=value)


def _histograms_of(grouped: GroupedSamples) -> Iterator[TrialHistogram]:
    values, counts = grouped.values, grouped.counts
    is_first = np.ones(values.size, dtype=bool)
    is_first[1:] = values[1:] != values[:-1]
    is_first[grouped.begins[:-1]] = True
    firsts = np.flatnonzero(is_first)
    distinct, summed = values[firsts], np.add.reduceat(counts, firsts)
    ends = np.searchsorted(firsts, grouped.begins).tolist()
    for key, start, end in zip(grouped.keys, ends, ends[1:], strict=False):
        yield TrialHistogram(*key, distinct[start:end], summed[start:end])


def series(run: StoredRun, only: Wanted = None) -> list[SeriesPoint]:
    """Returns the events of every trial that counts, ordered by metric, round and time."""
    rows: list[SeriesPoint] = []
    for _, group in _groups(run, (Shape.SERIES,), only, columns=READ_IN_TIME):
        readings = list(
            zip(group.at_ns.tolist(), group.values.tolist(), group.counts.tolist(), strict=True)
        )
        begins = group.begins.tolist()
        for key, start, end in zip(group.keys, begins, begins[1:], strict=False):
            rows += [SeriesPoint(*key, *reading) for reading in readings[start:end]]
    return sorted(rows, key=_by_round)


def _shared_loads(
    run: StoredRun, trials: Trials, share: tuple[int, int]
) -> tuple[SharedLoads, tuple[int, int]]:
    """Returns the shared loads of a run, and the share of its trials to read.

    Trials that started together may lie in several shares: the first one has all of them then.
    """
    from nephoscope.store.run import counts

    shared = SharedLoads(run, trials or counts)
    if not shared or share == ALL:
        return shared, share
    return shared, ALL if share[0] == 0 else _NO_TRIALS


def _with_weights(only: Wanted) -> Wanted:
    """Returns `only` with the metrics that weight others when they are merged."""
    weights = frozenset(WEIGHTS.values())
    return None if only is None else lambda of, metric: metric in weights or only(of, metric)


_by_round = attrgetter("benchmark", "metric", "target", "factors", "round", "trial")


def _groups(
    run: StoredRun,
    shapes: Sequence[Shape],
    only: Wanted,
    wanted_trials: Trials = None,
    share: tuple[int, int] = ALL,
    *,
    columns: Sequence[str] = READ,
) -> Iterator[tuple[Shape, GroupedSamples]]:
    """Yields the samples of each metric of shapes, by target, factors and trial, of each batch."""
    from nephoscope.store.run import counts

    wanted = {
        shape: {key for key in run.metrics_of_shape(shape) if only is None or only(*key)}
        for shape in shapes
    }
    for batch in run.batches(columns, share) if any(wanted.values()) else ():
        samples = BatchSamples(batch, wanted_trials or counts, columns)
        for shape, metrics in wanted.items():
            grouped = samples.grouped(metrics)
            if grouped is not None:
                yield shape, grouped
