"""Columns of a Parquet file in which all rows have one value, as its footer states them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FEW_ROWS = 4096
"""Rows up to which looking at the footer takes longer than reading."""


def read(file: pq.ParquetFile, groups: Sequence[int], columns: Sequence[str]) -> pa.Table:
    """Returns these columns of row groups; those of one value are made of what the footer states.

    Most texts are the same in all rows of a chunk, and reading them takes longer than the values.
    """
    stated = [file.metadata.row_group(number) for number in groups]
    rows = sum(group.num_rows for group in stated)
    constants = {}
    if rows > FEW_ROWS:
        first = pa.array(np.zeros(rows, dtype=np.int32))  # of all texts
        places = {name: place for place, name in enumerate(file.schema_arrow.names)}
        for name in columns:
            values = {_only_value(group.column(places[name])) for group in stated}
            value = next(iter(values))
            if value is not None and len(values) == 1:
                constants[name] = _repeated(value, first)
    read = [name for name in columns if name not in constants]
    # Of no column Arrow would forget how many rows there are.
    table = file.read_row_groups(groups, columns=read or columns[:1], use_threads=False)
    return pa.table(
        {name: constants[name] if name in constants else table[name] for name in columns}
    )


def _only_value(column: pq.ColumnChunkMetaData) -> str | int | None:
    """Returns the value that all rows of a column have; None where it is not known, or a float,
    of which two zeros are one."""
    known = column.statistics
    if known is None or not known.has_min_max or not known.has_null_count or known.null_count:
        return None
    least, most = known.min, known.max
    return least if isinstance(least, str | int) and least == most else None


def _repeated(value: str | int, first: pa.Array) -> pa.Array:
    """Returns a column of so many rows as `first` has zeros."""
    if isinstance(value, int):
        return pa.array(np.full(len(first), value, dtype=np.int64))
    return pa.DictionaryArray.from_arrays(first, pa.array([value]), safe=False)
