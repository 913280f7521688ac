"""Rows of samples as CSV by column: the bytes of Python's csv module in a fraction of its time.

What has few distinct values is written once for each combination of them. Numbers are made texts by
Arrow, except those that Python writes in another way.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nephoscope.store.trialfile import column_lists

NUMBERS = ("value", "count", "at_ns")
"""Columns of plain numbers, side by side in a row; all others are texts or dictionaries."""

_FEW_ROWS = 4096
"""Rows up to which they are written one by one."""
_LEAST, _MOST, _WHOLE = 1e-4, 1e10, 1e16
"""Arrow and Python write fractions alike from the first up to the second. Python writes whole
numbers up to the third without an exponent."""


def header(names: Sequence[str]) -> bytes:
    """Returns the line with the names of the columns."""
    return "".join(_lines([names])).encode()


def rows(table: pa.Table, names: Sequence[str], cell: Callable[[Any], Any]) -> bytes:
    """Returns the rows of a table with these columns, `NUMBERS` among them.

    cell: what stands for a value of another column.
    """
    if table.num_rows <= _FEW_ROWS:
        columns = column_lists(table, names)
        cells = zip(*(map(cell, column) for column in columns), strict=True)
        return "".join(_lines(cells)).encode()
    first = names.index(NUMBERS[0])
    before, after = names[:first], names[first + len(NUMBERS) :]
    # An empty cell stands for the numbers, so that a lone cell is written as one among many.
    heads = _combined(
        table, before, lambda own: [line[:-2] for line in _lines([*map(cell, r), ""] for r in own)]
    )
    tails = _combined(table, after, lambda own: _lines(["", *map(cell, r)] for r in own))
    numbers = _joined([_number_texts(table[name].to_numpy()) for name in NUMBERS], ",")
    lines = _joined([heads, numbers, tails], "")
    ends = np.frombuffer(lines.buffers()[1], np.int64)
    return memoryview(lines.buffers()[2])[: int(ends[len(lines)])].tobytes()


def _lines(cells: Iterable[Iterable[Any]]) -> list[str]:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    out = []
    for row in cells:
        writer.writerow(row)
        out.append(text.getvalue())
        text.seek(0)
        text.truncate()
    return out


def _combined(
    table: pa.Table, names: Sequence[str], write: Callable[[list[tuple[Any, ...]]], list[str]]
) -> pa.Array:
    """Returns a text for each row, written once for each combination of these columns."""
    if not names:
        return pa.array(["\r\n"], pa.large_string()).take(pa.array(np.zeros(table.num_rows, int)))
    coded = [_coded(table[name]) for name in names]
    joined = np.zeros(table.num_rows, dtype=np.int64)
    for values, codes in coded:
        if (int(joined.max()) + 1) * len(values) >= 2**62:
            joined = np.unique(joined, return_inverse=True)[1]
        joined = joined * len(values) + codes
    _, firsts, place = np.unique(joined, return_index=True, return_inverse=True)
    cells = zip(
        *([values[code] for code in codes[firsts].tolist()] for values, codes in coded), strict=True
    )
    return pa.array(write(list(cells)), pa.large_string()).take(pa.array(place))


def _joined(pieces: Sequence[pa.Array | pa.Scalar], between: str) -> pa.Array:
    return pc.binary_join_element_wise(*pieces, pa.scalar(between, pa.large_string()))


def _coded(column: pa.ChunkedArray) -> tuple[list[Any], NDArray[np.int64]]:
    """Returns values of a column, and the place of that of each row among them."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    values: list[Any] = []
    codes = []
    for chunk in column.chunks:
        codes.append(chunk.indices.to_numpy().astype(np.int64) + len(values))
        values += chunk.dictionary.to_pylist()
    return values, np.concatenate(codes)


def _number_texts(numbers: NDArray[Any]) -> pa.Array:
    """Returns the text of each number as Python writes it."""
    if numbers.dtype.kind != "f":
        return pc.cast(pa.array(numbers), pa.large_string())
    size = np.abs(numbers)
    is_whole = (np.trunc(numbers) == numbers) & (size < _WHOLE)
    is_whole &= ~(np.signbit(numbers) & (numbers == 0))
    whole = pc.cast(pa.array(np.where(is_whole, numbers, 0).astype(np.int64)), pa.large_string())
    texts = _joined([whole, pa.scalar(".0", pa.large_string())], "")
    if is_whole.all():
        return texts
    fractions = pc.cast(pa.array(numbers), pa.large_string())
    texts = pc.if_else(pa.array(is_whole), texts, fractions)
    is_alike = is_whole | ((size >= _LEAST) & (size < _MOST))
    own = pa.array([*map(repr, numbers[~is_alike].tolist())], pa.large_string())
    return pc.replace_with_mask(texts, pa.array(~is_alike), own)
