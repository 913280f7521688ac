"""The queries that analyses ask of a run: one row a trial and metric, ordered.

Unless asked otherwise, only trials that count are seen: valid, and of no warm-up round. Trials of
generators that share a load are one trial, under the name of all of them (shared_loads.py). A trial
lies in one batch, so that the rows of one batch are held at a time; they are sorted and grouped as
columns (docs/decisions/0018-small-runs-answer-at-once.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nephoscope.core.model import Shape
from nephoscope.store.shared_loads import WEIGHTS, SharedLoads
from nephoscope.store.trial_rows import Integers as Integers
from nephoscope.store.trial_rows import SeriesPoint as SeriesPoint
from nephoscope.store.trial_rows import TrialHistogram as TrialHistogram
from nephoscope.store.trial_rows import TrialMetric as TrialMetric
from nephoscope.store.trial_rows import TrialValue as TrialValue
from nephoscope.store.trial_rows import Values as Values

if TYPE_CHECKING:
    import pyarrow as pa

    from nephoscope.core.model import TrialRecord
    from nephoscope.store.batch import Batch
    from nephoscope.store.run import StoredRun


_COLUMNS = ("benchmark", "metric", "target", "factors", "unit", "better")
_READING = ("value", "count", "at_ns")
_READ = (*_COLUMNS, *_READING)
_FEW_ROWS = 4096
"""Rows up to which texts are numbered in Python."""

Wanted = Callable[[str, str], bool] | None
"""States whether a metric of a benchmark is asked for; None for all of them."""

Trials = Callable[["TrialRecord"], bool] | None
"""States whether a trial is asked for; None for those that count."""

ALL = (0, 1)
"""Share of the trials that is read: part i of k, see `StoredRun.batches`."""
_NO_TRIALS = (0, 2**62)
"""Share of a run in which no trial lies."""


Group = tuple[str, str, str, str, str, str, str, int]
"""The first eight fields of a row, which its samples share."""


class _GroupedSamples(NamedTuple):
    """Samples of a batch, grouped: those of group i are begins[i]:begins[i + 1].

    values ascend within a group; times do where `by_time`.
    """

    keys: list[Group]
    begins: Integers
    values: Values
    counts: Integers
    at_ns: Integers


def trial_medians(
    run: StoredRun, only: Wanted = None, trials: Trials = None, share: tuple[int, int] = ALL
) -> list[TrialValue]:
    """Returns the scalar metrics of every trial asked for, ordered by metric, then round."""
    rows = []
    shared, share = _shared_loads(run, trials, share)
    wanted = _with_weights(only) if shared else only
    for keys, begins, values, *_ in _groups(run, Shape.SCALAR, wanted, trials, share):
        low, high = (begins[:-1] + begins[1:] - 1) // 2, (begins[:-1] + begins[1:]) // 2
        # The middle one is not added to itself and halved, which overflows beyond 8.9e307.
        middle = np.where(low == high, values[low], (values[low] + values[high]) / 2)
        rows += [
            TrialValue(*key, value=value) for key, value in zip(keys, middle.tolist(), strict=True)
        ]
    if shared:
        rows = [
            row for row in shared.values(rows) if only is None or only(row.benchmark, row.metric)
        ]
    return sorted(rows, key=_by_round)


def histograms(
    run: StoredRun, only: Wanted = None, trials: Trials = None, share: tuple[int, int] = ALL
) -> list[TrialHistogram]:
    """Returns the histograms of every trial asked for, ordered by metric, then round."""
    rows = []
    shared, share = _shared_loads(run, trials, share)
    for keys, begins, values, counts, _ in _groups(run, Shape.HISTOGRAM, only, trials, share):
        is_first = np.ones(values.size, dtype=bool)
        is_first[1:] = values[1:] != values[:-1]
        is_first[begins[:-1]] = True
        firsts = np.flatnonzero(is_first)
        distinct, summed = values[firsts], np.add.reduceat(counts, firsts)
        ends = np.searchsorted(firsts, begins).tolist()
        rows += [
            TrialHistogram(*key, distinct[start:end], summed[start:end])
            for key, start, end in zip(keys, ends, ends[1:], strict=False)
        ]
    return sorted(shared.histograms(rows) if shared else rows, key=_by_round)


def series(run: StoredRun, only: Wanted = None) -> list[SeriesPoint]:
    """Returns the events of every trial that counts, ordered by metric, round and time."""
    rows: list[SeriesPoint] = []
    for group in _groups(run, Shape.SERIES, only, by_time=True):
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
    shape: Shape,
    only: Wanted,
    wanted_trials: Trials = None,
    share: tuple[int, int] = ALL,
    *,
    by_time: bool = False,
) -> Iterator[_GroupedSamples]:
    """Yields the samples of each metric of a shape, by target, factors and trial, of each batch."""
    from nephoscope.store.run import counts

    metrics = {key for key in run.metrics_of_shape(shape) if only is None or only(*key)}
    for batch in run.batches(_READ, share) if metrics else ():
        grouped = _grouped(batch, metrics, wanted_trials or counts, by_time)
        if grouped is not None:
            yield grouped


def _grouped(
    batch: Batch,
    metrics: set[tuple[str, str]],
    is_wanted: Callable[[TrialRecord], bool],
    by_time: bool,
) -> _GroupedSamples | None:
    """Returns the samples of these metrics in the trials asked for; None without any."""
    records = [record for record, _ in batch.trials]
    sizes = [rows for _, rows in batch.trials]
    coded = [_coded(batch.table[name]) for name in _COLUMNS]
    (benchmarks, benchmark), (names, metric) = coded[:2]
    selected = np.repeat(np.array([*map(is_wanted, records)], dtype=bool), sizes)
    wanted = [[(name, of) in metrics for of in names] for name in benchmarks]
    if not selected.any() or not any(map(any, wanted)):
        return None
    selected &= np.array(wanted, dtype=bool)[benchmark, metric]
    rows = np.flatnonzero(selected)
    if not rows.size:
        return None
    trial = np.repeat(np.arange(len(records)), sizes)[rows]
    group, firsts = _numbered([trial, *(codes[rows] for _, codes in coded)])
    values, counts, at_ns = (batch.table[name].to_numpy()[rows] for name in _READING)
    order = np.lexsort((counts, values, at_ns, group) if by_time else (values, group))
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    keys: list[Any] = [
        (
            *(texts[codes[row]] for texts, codes in coded),
            records[number].key.name,
            records[number].key.round,
        )
        for row, number in zip(rows[firsts].tolist(), trial[firsts].tolist(), strict=True)
    ]
    begins = np.append(starts, group.size)
    return _GroupedSamples(keys, begins, values[order], counts[order], at_ns[order])


def _numbered(columns: Sequence[Integers]) -> tuple[Integers, Integers]:
    """Returns the group of each row, from 0, and the first row of each group.

    columns: codes from 0. Codes are joined into one number as long as it fits 64 bits.
    """
    joined = columns[0]
    for column in columns[1:]:
        size = int(column.max()) + 1
        if size == 1:
            continue
        if (int(joined.max()) + 1) * size >= 2**62:
            joined = np.unique(joined, return_inverse=True)[1]
        joined = joined * size + column
    _, firsts, group = np.unique(joined, return_index=True, return_inverse=True)
    return group, firsts


def _coded(column: pa.ChunkedArray) -> tuple[list[str], Integers]:
    """Returns the distinct texts of a column, and the number of the text of each row."""
    import pyarrow as pa

    places: dict[str, int] = {}
    if len(column) <= _FEW_ROWS:
        # The first use of Arrow's own functions takes 15 MiB of addresses.
        texts = column.to_pylist()
        numbers = [places.setdefault(text, len(places)) for text in texts]
        return list(places), np.array(numbers, dtype=np.int64)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    codes = [np.empty(0, dtype=np.int64)]
    for chunk in column.chunks:
        own = np.array(
            [places.setdefault(text, len(places)) for text in chunk.dictionary.to_pylist()],
            dtype=np.int64,
        )
        codes.append(own[chunk.indices.to_numpy()])
    return list(places), np.concatenate(codes)
