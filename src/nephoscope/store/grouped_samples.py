"""Samples of several trials as columns, grouped by metric, target, factors and trial.

Nothing is done by row in Python: texts are numbers, and what all rows share is looked at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nephoscope.store.trial_rows import Integers, Values

if TYPE_CHECKING:
    import pyarrow as pa

    from nephoscope.core.model import TrialRecord
    from nephoscope.store.batch import Batch

COLUMNS = ("benchmark", "metric", "target", "factors", "unit", "better")
READ = (*COLUMNS, "value", "count")
READ_IN_TIME = (*READ, "at_ns")
_FEW_ROWS = 4096
"""Rows up to which texts are numbered in Python."""
_LONG = 64
"""Mean size of groups from which on they are sorted one by one."""

Group = tuple[str, str, str, str, str, str, str, int]
"""The first eight fields of a row, which its samples share."""


class GroupedSamples(NamedTuple):
    """Samples of a batch, grouped: those of group i are begins[i]:begins[i + 1].

    values ascend within a group; times do where there are any (`READ_IN_TIME`).
    """

    keys: list[Group]
    begins: Integers
    values: Values
    counts: Integers
    at_ns: Integers


class _Codes(NamedTuple):
    """A column of texts: the distinct ones, and the number of that of each row.

    of_rows: None where all rows have the only text.
    """

    texts: list[str]
    of_rows: Integers | None

    def at(self, rows: Integers) -> list[str]:
        """Returns the texts of rows."""
        if self.of_rows is None:
            return self.texts * rows.size
        return [self.texts[number] for number in self.of_rows[rows].tolist()]


class BatchSamples:
    """The samples of a batch in the trials asked for."""

    def __init__(
        self, batch: Batch, is_wanted: Callable[[TrialRecord], bool], columns: Sequence[str]
    ) -> None:
        self._table = batch.table
        self._records = [record for record, _ in batch.trials]
        self._sizes = np.array([rows for _, rows in batch.trials], dtype=np.int64)
        self._is_wanted = np.array([*map(is_wanted, self._records)], dtype=bool)
        self._codes = [_coded(batch.table[name]) for name in COLUMNS]
        self._is_in_time = "at_ns" in columns

    def grouped(self, metrics: set[tuple[str, str]]) -> GroupedSamples | None:
        """Returns the samples of these metrics; None without any."""
        rows = self._rows_of(metrics)
        if not self._table.num_rows or (rows is not None and not rows.size):
            return None
        order, begins, records = self._in_groups(rows)
        firsts = begins[:-1] if isinstance(order, slice) else order[begins[:-1]]
        keys = [
            (*texts, record.key.name, record.key.round)
            for *texts, record in zip(
                *(codes.at(firsts) for codes in self._codes), records, strict=True
            )
        ]
        values, counts = (self._table[name].to_numpy()[order] for name in ("value", "count"))
        if not self._is_in_time:
            values, counts = sorted_within(values, counts, begins)
            return GroupedSamples(keys, begins, values, counts, counts[:0])
        at_ns = self._table["at_ns"].to_numpy()[order]
        group = np.repeat(np.arange(len(keys)), np.diff(begins))
        in_time = np.lexsort((counts, values, at_ns, group))
        return GroupedSamples(keys, begins, values[in_time], counts[in_time], at_ns[in_time])

    def _in_groups(
        self, rows: Integers | None
    ) -> tuple[Integers | slice, Integers, list[TrialRecord]]:
        """Returns the order of rows by group, where each group begins, and the trial of each."""
        order: Integers | slice = slice(None) if rows is None else rows
        size = self._table.num_rows if rows is None else rows.size
        if self._sizes.size == 1 and all(codes.of_rows is None for codes in self._codes):
            return order, np.array([0, size]), self._records
        trial = np.repeat(np.arange(self._sizes.size), self._sizes)
        joined = self._joined(trial, order)
        if np.any(joined[1:] < joined[:-1]):
            # Small numbers are sorted by counting.
            small = joined.astype(np.uint16) if joined.max() < 1 << 16 else joined
            by_group = np.argsort(small, kind="stable")
            joined, order = joined[by_group], by_group if rows is None else rows[by_group]
        begins = np.flatnonzero(joined[1:] != joined[:-1]) + 1
        begins = np.concatenate([[0], begins, [size]])
        firsts = begins[:-1] if isinstance(order, slice) else order[begins[:-1]]
        return order, begins, [self._records[number] for number in trial[firsts].tolist()]

    def _rows_of(self, metrics: set[tuple[str, str]]) -> Integers | None:
        """Returns the rows of these metrics in the trials asked for; None for all rows."""
        (benchmarks, benchmark), (names, metric) = self._codes[:2]
        wanted = np.array([[(name, of) in metrics for of in names] for name in benchmarks])
        if not self._is_wanted.any() or not wanted.any():
            return np.empty(0, dtype=np.int64)
        if self._is_wanted.all() and wanted.all():
            return None
        selected = np.repeat(self._is_wanted, self._sizes)
        selected &= wanted[0 if benchmark is None else benchmark, 0 if metric is None else metric]
        return np.flatnonzero(selected)

    def _joined(self, trial: Integers, rows: Integers | slice) -> Integers:
        """Returns a number for each row that only rows of its trial and its texts have.

        Numbers rise with the trial, then with the codes of the columns.
        """
        joined = trial[rows]
        for codes in self._codes:
            if codes.of_rows is None:
                continue
            column = codes.of_rows[rows]
            size = int(column.max()) + 1
            if (int(joined.max()) + 1) * size >= 2**62:
                joined = np.unique(joined, return_inverse=True)[1]
            joined = joined * size + column
        return joined


def sorted_within(values: Values, counts: Integers, begins: Integers) -> tuple[Values, Integers]:
    """Returns the values of each group ascending, and the counts with them; equal ones in order."""
    rises = values[1:] >= values[:-1]
    rises[begins[1:-1] - 1] = True
    if rises.all():
        return values, counts
    if values.size < _LONG * (begins.size - 1):
        group = np.repeat(np.arange(begins.size - 1), np.diff(begins))
        order = np.lexsort((values, group))
        return values[order], counts[order]
    # Without counts to move along, equal values may change places: all but zeros of two signs.
    is_alone = bool(np.all(counts == counts[0])) and not np.any(np.signbit(values))
    values, counts = values.copy(), counts if is_alone else counts.copy()
    for start, end in pairwise(begins.tolist()):
        own = values[start:end]
        if is_alone:
            own.sort()
            continue
        order = np.argsort(own, kind="stable")
        own[:], counts[start:end] = own[order], counts[start:end][order]
    return values, counts


def _coded(column: pa.ChunkedArray) -> _Codes:
    """Returns the distinct texts of a column, and the number of the text of each row."""
    import pyarrow as pa

    places: dict[str, int] = {}
    is_coded = pa.types.is_dictionary(column.type) and not column.null_count
    if is_coded and 0 < len(column) <= _FEW_ROWS:
        return _in_order_of_rows(_codes_of_dictionaries(column))
    if len(column) <= _FEW_ROWS:
        # The first use of Arrow's own functions takes 15 MiB of addresses.
        texts = column.to_pylist()
        numbers = [places.setdefault(text, len(places)) for text in texts]
        return _Codes(list(places), np.array(numbers, dtype=np.int64) if len(places) > 1 else None)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    return _codes_of_dictionaries(column)


def _codes_of_dictionaries(column: pa.ChunkedArray) -> _Codes:
    places: dict[str, int] = {}
    own = [
        np.array(
            [places.setdefault(text, len(places)) for text in chunk.dictionary.to_pylist()],
            dtype=np.int64,
        )
        for chunk in column.chunks
    ]
    if len(places) == 1 and not column.null_count:
        return _Codes(list(places), None)
    codes = [
        numbers[chunk.indices.to_numpy()] for numbers, chunk in zip(own, column.chunks, strict=True)
    ]
    return _Codes(list(places), np.concatenate([np.empty(0, dtype=np.int64), *codes]))


def _in_order_of_rows(codes: _Codes) -> _Codes:
    """Returns codes whose texts stand in the order in which rows first have them."""
    texts, of_rows = codes
    if of_rows is None:
        return codes
    used, first = np.unique(of_rows, return_index=True)
    order = used[np.argsort(first)]
    place_of = np.zeros(len(texts), dtype=np.int64)
    place_of[order] = np.arange(order.size)
    ordered = [texts[place] for place in order.tolist()]
    return _Codes(ordered, place_of[of_rows] if len(ordered) > 1 else None)


def used_texts(column: pa.ChunkedArray) -> tuple[list[str], Integers]:
    """Returns the texts that the rows of a column have, and the number of that of each row."""
    texts, of_rows = _coded(column)
    if of_rows is None:
        return texts, np.zeros(len(column), dtype=np.int64)
    is_used = np.bincount(of_rows, minlength=len(texts)) > 0
    used = [text for text, own in zip(texts, is_used.tolist(), strict=True) if own]
    return used, (np.cumsum(is_used) - 1)[of_rows]
