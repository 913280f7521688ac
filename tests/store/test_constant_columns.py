from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nephoscope.store import constant_columns

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


def file_of(statistics: bool = True) -> pq.ParquetFile:
    sink = io.BytesIO()
    pq.write_table(pa.table(COLUMNS), sink, row_group_size=6000, write_statistics=statistics)
    texts = [name for name, values in COLUMNS.items() if name not in ("ones", "numbers", "zeros")]
    return pq.ParquetFile(sink, read_dictionary=texts)


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("few", [0, ROWS])
def test_columns_are_those_of_the_file(
    statistics: bool, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constant_columns, "FEW_ROWS", few)
    for groups in [0], [1], [0, 1]:
        for columns in [*COLUMNS], ["same"], ["ones", "same"], ["numbers", "same"]:
            file = file_of(statistics)
            expected = file.read_row_groups(groups, columns=columns)
            got = constant_columns.read(file, groups, columns)
            assert got.to_pylist() == expected.to_pylist()
            assert got.column_names == columns
            assert [str(field.type) for field in got.schema] == [
                str(expected.schema.field(name).type) for name in columns
            ]
    signs = np.signbit(constant_columns.read(file_of(), [0], ["zeros"])["zeros"].to_numpy())
    assert signs.tolist()[:4] == [True, False, True, False]


def test_a_constant_column_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    read = pq.ParquetFile.read_row_groups

    def noted(file, groups, columns, **more):
        asked.append(columns)
        return read(file, groups, columns=columns, **more)

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", noted)
    file = file_of()
    constant_columns.read(file, [0, 1], [*COLUMNS])
    constant_columns.read(file, [1], ["by_group", "numbers"])
    assert asked == [["by_group", "different", "none", "all_none", "numbers", "zeros"], ["numbers"]]
