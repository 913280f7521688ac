from __future__ import annotations

import csv
import io
import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.store import csv_rows
from nephoscope.store.export import cell

numbers = st.floats(allow_nan=False) | st.integers(-(2**53), 2**53).map(float)
edges = [0.0, -0.0, 1e-4, 9.999e-5, 1e10, 1e10 - 0.5, 1e10 + 0.5, 1e15, 1e16, 1e16 - 2, 1e22]
edges += [-value for value in edges] + [np.inf, 5e-324, 0.1, 1 / 3, 123456.789]
texts = st.text(st.sampled_from('a=,"\r\n -1é'), max_size=4)


def by_row(table, names):
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(names)
    writer.writerows([cell(value) for value in row.values()] for row in table.to_pylist())
    return text.getvalue().encode()


def table_of(values, names, levels):
    size = len(values)
    picked = np.arange(size) % max(1, len(names))
    columns = {
        "target": pa.array([names[at] for at in picked]),
        "warmup": pa.DictionaryArray.from_arrays(picked % 2, pa.array([True, False])),
        "value": pa.array(values, pa.float64()),
        "count": pa.array(np.arange(size) * 10**14 - 5),
        "at_ns": pa.array(np.arange(size)),
    }
    if levels:
        places = np.arange(size) % len(levels)
        columns["factor_x"] = pa.DictionaryArray.from_arrays(places, pa.array(levels))
    return pa.table(columns)


@pytest.mark.parametrize("few", [0, 10_000])
@given(
    values=st.lists(numbers, min_size=1),
    names=st.lists(texts, min_size=1, max_size=3),
    levels=st.lists(st.none() | texts, max_size=3)
    | st.lists(st.none() | st.floats(allow_nan=False), max_size=3),
)
def test_rows_are_those_of_the_csv_module(values, names, levels, few):
    table = table_of([*values, *edges], names, levels)
    # Columns of several pieces, whose dictionaries may differ.
    pieces = pa.concat_tables([table.slice(0, 3), table.slice(3)])
    before, csv_rows._FEW_ROWS = csv_rows._FEW_ROWS, few
    try:
        got = csv_rows.header(table.schema.names) + csv_rows.rows(pieces, table.schema.names, cell)
    finally:
        csv_rows._FEW_ROWS = before
    assert got == by_row(table, table.schema.names)


def test_a_formula_gets_an_apostrophe_in_any_number_of_rows():
    table = table_of([1.0] * 5000, ["=cmd()"], [])
    first, *_ = csv_rows.rows(table, table.schema.names, cell).decode().splitlines()
    assert first.startswith("'=cmd(),True,1.0,"), json.dumps(first)
