from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nephoscope.store import constant_columns
from nephoscope.store.parquet_footer import column_chunks

ROWS = 12_000
COLUMNS = {
    "same": ["a"] * ROWS,
    "by_group": ["a"] * 6000 + ["b"] * 6000,
    "different": [str(number % 3) for number in range(ROWS)],
    "none": [None, *["a"] * (ROWS - 1)],
    "all_none": pa.nulls(ROWS, pa.string()),
    "ones": np.ones(ROWS, dtype=np.int64),
    "numbers": np.arange(ROWS),
    "zeros": np.where(np.arange(ROWS) % 2, 0.0, -0.0),
}


TEXTS = [name for name in COLUMNS if name not in ("ones", "numbers", "zeros")]


def content(statistics: bool = True) -> io.BytesIO:
    sink = io.BytesIO()
    pq.write_table(pa.table(COLUMNS), sink, row_group_size=6000, write_statistics=statistics)
    return sink


def read(sink: io.BytesIO, groups: Sequence[int], columns: Sequence[str]) -> pa.Table:
    file = pq.ParquetFile(sink, read_dictionary=TEXTS)
    return constant_columns.read(file, groups, columns, lambda: column_chunks(sink))


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("few", [0, ROWS])
def test_columns_are_those_of_the_file(
    statistics: bool, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constant_columns, "FEW_ROWS", few)
    for groups in [0], [1], [0, 1]:
        for columns in [*COLUMNS], ["same"], ["ones", "same"], ["numbers", "same"]:
            sink = content(statistics)
            file = pq.ParquetFile(sink, read_dictionary=TEXTS)
            expected = file.read_row_groups(groups, columns=columns)
            got = read(sink, groups, columns)
            assert got.to_pylist() == expected.to_pylist()
            assert got.column_names == columns
            assert [str(field.type) for field in got.schema] == [
                str(expected.schema.field(name).type) for name in columns
            ]
    signs = np.signbit(read(content(), [0], ["zeros"])["zeros"].to_numpy())
    assert signs.tolist()[:4] == [True, False, True, False]


def test_a_constant_column_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    read_groups = pq.ParquetFile.read_row_groups

    def noted(file, groups, columns, **more):
        asked.append(columns)
        return read_groups(file, groups, columns=columns, **more)

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", noted)
    read(content(), [0, 1], [*COLUMNS])
    read(content(), [1], ["by_group", "numbers"])
    assert asked == [["by_group", "different", "none", "all_none", "numbers", "zeros"], ["numbers"]]
