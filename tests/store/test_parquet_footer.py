"""Footers of Parquet files, also damaged ones that end the process within Arrow."""

from __future__ import annotations

import io
import random
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nephoscope.store.parquet_footer import column_chunks

ROWS = 5_000


def file_of(**options: object) -> io.BytesIO:
    columns = {
        "text": pa.array(["é"] * ROWS),
        "texts": pa.array([str(number) for number in range(ROWS)]),
        "missing": pa.array([None, *["a"] * (ROWS - 1)]),
        "least": np.full(ROWS, np.iinfo(np.int64).min),
        "float": np.zeros(ROWS),
    }
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, row_group_size=2_000, **options)
    return sink


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"compression": "zstd"}])
def test_places_and_values_are_those_that_arrow_reads(options: dict[str, object]) -> None:
    sink = file_of(**options)
    metadata = pq.ParquetFile(sink).metadata
    groups = column_chunks(sink)
    assert len(groups) == metadata.num_row_groups == 3
    for number, group in enumerate(groups):
        arrow = [metadata.row_group(number).column(place) for place in range(len(group))]
        assert [chunk.name for chunk in group] == [column.path_in_schema for column in arrow]
        assert [chunk.begin for chunk in group] == [
            column.dictionary_page_offset or column.data_page_offset for column in arrow
        ]
    least = int(np.iinfo(np.int64).min)
    assert [chunk.only_value for chunk in groups[0]] == ["é", None, None, least, None]
    assert groups[2][2].only_value == "a"


def test_without_statistics_no_value_is_known() -> None:
    assert {
        chunk.only_value
        for group in column_chunks(file_of(write_statistics=False))
        for chunk in group
    } == {None}


def test_a_damaged_footer_is_refused_or_read_and_takes_no_time() -> None:
    sink = file_of()
    whole = sink.getvalue()
    (size,) = struct.unpack("<I", whole[-8:-4])
    draw = random.Random(1)
    refused = 0
    for _ in range(2_000):
        damaged = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            damaged[-8 - draw.randrange(size)] = draw.randrange(256)
        try:
            column_chunks(io.BytesIO(bytes(damaged)))
        except pa.ArrowInvalid as error:
            refused += "its footer is damaged" in str(error)
    assert refused > 200


@pytest.mark.parametrize(
    "footer",
    [
        b"",
        b"\x19" * 100_000,
        b"\x1c" * 100_000,
        b"\x18" + b"\xff" * 20,
        b"\x19\xfc\xff\xff\xff\x0f",
    ],
)
def test_impossible_footers_are_refused(footer: bytes) -> None:
    content = b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1"
    with pytest.raises(pa.ArrowInvalid, match="its footer is damaged"):
        column_chunks(io.BytesIO(content))
