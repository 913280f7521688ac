"""Columns of a Parquet file in which all rows have one value, as its footer states them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nephoscope.store.parquet_bounds import check_indices
from nephoscope.store.parquet_footer import ColumnChunk

FEW_ROWS = 4096
"""Rows up to which looking at the footer takes longer than reading."""


def read(
    file: pq.ParquetFile,
    groups: Sequence[int],
    columns: Sequence[str],
    stated: Callable[[], list[list[ColumnChunk]]],
) -> pa.Table:
    """Returns these columns of row groups; those of one value are made of what the footer states.

    Most texts are the same in all rows of a chunk, and reading them takes longer than the values.
    stated: returns the columns of all row groups of the file.
    """
    rows = sum(file.metadata.row_group(number).num_rows for number in groups)
    constants = {}
    if rows > FEW_ROWS:
        first = pa.array(np.zeros(rows, dtype=np.int32))  # of all texts
        chunks = stated()
        for name in columns:
            values = {
                chunk.only_value
                for number in groups
                for chunk in chunks[number]
                if chunk.name == name
            }
            value = values.pop() if len(values) == 1 else None
            if value is not None:
                constants[name] = _repeated(value, first)
    read = [name for name in columns if name not in constants]
    # Of no column Arrow would forget how many rows there are.
    table = file.read_row_groups(groups, columns=read or columns[:1], use_threads=False)
    for column in table.columns:
        check_indices(column)
    return pa.table(
        {name: constants[name] if name in constants else table[name] for name in columns}
    )


def _repeated(value: str | int, first: pa.Array) -> pa.Array:
    """Returns a column of so many rows as `first` has zeros."""
    if isinstance(value, int):
        return pa.array(np.full(len(first), value, dtype=np.int64))
    return pa.DictionaryArray.from_arrays(first, pa.array([value]), safe=False)
