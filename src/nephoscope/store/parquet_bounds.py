"""Bounds of what the rows of a Parquet file take in memory, which its size does not show.

A dictionary of one long text, repeated by a run of indices, is a file of some kilobytes and a
column of terabytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

GROUP_ROWS = 20_000_000
"""Rows that are read at once: an imported file of the largest size has fewer samples."""
_FEW_ROWS = 16_384
"""Rows up to which texts are looked up one by one, without Arrow's functions."""
TEXT_BYTES = 1 << 30
"""Bytes of one column of texts that are read at once."""


def check(file: pq.ParquetFile, groups: Sequence[int]) -> None:
    """Raises ArrowInvalid for nested columns, and for more rows than `GROUP_ROWS`.

    What a file states of the size of its columns is no bound: its pages may be longer. Texts are
    therefore read as dictionaries, and counted by `decoded`.
    """
    for field in file.schema_arrow:
        if pa.types.is_nested(field.type):
            raise pa.ArrowInvalid(f"its column {field.name[:40]} is nested")
    rows = sum(file.metadata.row_group(number).num_rows for number in groups)
    if rows > GROUP_ROWS:
        raise pa.ArrowInvalid(f"it has {rows:,} rows in one part; {GROUP_ROWS:,} are read")


def decoded(table: pa.Table) -> pa.Table:
    """Returns a table with plain texts for dictionaries. Raises ArrowInvalid for too many bytes."""
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            plain = field.with_type(field.type.value_type)
            texts = plain_texts(table.column(place), field.name)
            table = table.set_column(place, plain, texts)
    return table


def plain_texts(column: pa.ChunkedArray | pa.Array, name: str) -> pa.ChunkedArray | pa.Array:
    """Returns a column of dictionaries as texts; see `decoded`. Others are returned as they are."""
    if not pa.types.is_dictionary(column.type):
        return column
    check_indices(column)
    is_chunked = isinstance(column, pa.ChunkedArray)
    chunks = column.chunks if is_chunked else [column]
    # No text is longer than all of its dictionary.
    size = sum(len(chunk) * chunk.dictionary.nbytes for chunk in chunks)
    if size > TEXT_BYTES and (size := sum(map(_text_bytes, chunks))) > TEXT_BYTES:
        raise pa.ArrowInvalid(f"the texts of {name[:40]} take {size >> 30:,} GiB")
    if len(column) > _FEW_ROWS:
        return column.cast(column.type.value_type)
    # These functions take longer to import than few rows to look up.
    plain = [
        pa.array(_looked_up(chunk.dictionary.to_pylist(), chunk.indices), column.type.value_type)
        for chunk in chunks
    ]
    return pa.chunked_array(plain, column.type.value_type) if is_chunked else plain[0]


def _looked_up(texts: Sequence[str | None], places: pa.Array) -> list[str | None]:
    return [None if place is None else texts[place] for place in places.to_pylist()]


def check_indices(column: pa.ChunkedArray | pa.Array) -> None:
    """Raises ArrowInvalid for a dictionary with rows beyond its texts, which reading allows."""
    if pa.types.is_dictionary(column.type):
        column.validate(full=True)


def _text_bytes(chunk: pa.DictionaryArray) -> int:
    import pyarrow.compute as pc  # small runs do not need it

    lengths = pc.binary_length(chunk.dictionary).cast(pa.int64())
    return pc.sum(lengths.take(chunk.indices)).as_py() or 0
