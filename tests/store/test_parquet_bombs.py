"""Small Parquet files whose rows would take gigabytes are refused, or read without taking them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nephoscope.core.errors import UsageError
from nephoscope.features.sla import events
from nephoscope.store import parquet_bounds, trialfile

ROWS = 30_000
TEXT = "x" * 100_000
MEMORY_BYTES = 400 << 20


def repeated(text: str, rows: int = ROWS) -> pa.DictionaryArray:
    """One text in every row, which takes a few bytes in a file."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))


def content(columns: dict[str, Any]) -> bytes:
    sink = io.BytesIO()
    # Without the schema of Arrow the file says nothing of dictionaries: its texts are texts.
    pq.write_table(pa.table(columns), sink, compression="zstd", store_schema=False)
    return sink.getvalue()


def samples(**changes: Any) -> bytes:
    columns: dict[str, Any] = {}
    for field in trialfile.SCHEMA:
        is_text = field.type == pa.string()
        columns[field.name] = (
            repeated("a") if is_text else np.zeros(ROWS, field.type.to_pandas_dtype())
        )
    return content({**columns, **changes})


def test_texts_of_trials_are_counted_before_they_are_decoded() -> None:
    bomb = samples(factors=repeated(TEXT))
    assert len(bomb) < 100_000
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(pa.ArrowInvalid, match="texts of factors take 2 GiB"):
        trialfile._table_in(bomb)
    assert pa.default_memory_pool().max_memory() - before < MEMORY_BYTES


def test_long_texts_within_the_bound_are_read_as_they_are() -> None:
    text = "y" * 40_000
    rows = trialfile._table_in(samples(factors=pa.array([text] + ["z"] * (ROWS - 1))))
    assert rows.schema.types == trialfile.SCHEMA.types
    assert rows["factors"][0].as_py() == text
    assert rows["factors"][ROWS - 1].as_py() == "z"
    assert trialfile._table_in(samples()).num_rows == ROWS


def test_nested_columns_and_too_many_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    nested = pa.array([[[1]]] * ROWS)
    with pytest.raises(pa.ArrowInvalid, match="column count is nested"):
        trialfile._table_in(samples(count=nested))
    monkeypatch.setattr(parquet_bounds, "GROUP_ROWS", ROWS - 1)
    with pytest.raises(pa.ArrowInvalid, match="30,000 rows in one part"):
        trialfile._table_in(samples())


def test_events_are_counted_before_one_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "events.parquet"
    file.write_bytes(content({"time": np.zeros(ROWS), "ok": np.ones(ROWS, np.int8)}))
    monkeypatch.setattr(events.limits, "SLA_EVENTS", ROWS - 1)
    monkeypatch.setattr(events, "batches_of", lambda *_, **__: pytest.fail("it is read"))
    with pytest.raises(UsageError, match=f"more than {ROWS - 1:,} events"):
        events.read([file])


def test_events_with_one_long_name_take_its_bytes_once(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    times, ok = 1685577600.0 + np.arange(ROWS), np.ones(ROWS, np.int64)
    path.write_bytes(content({"time": times, "ok": ok, "service": repeated(TEXT)}))
    before = pa.default_memory_pool().max_memory()
    assert sum(batch.num_rows for batch in events.batches_of(path, numbers=False)) == ROWS
    assert pa.default_memory_pool().max_memory() - before < MEMORY_BYTES
    path.write_bytes(content({"time": times, "ok": repeated("up")}))
    assert {str(batch["ok"].type) for batch in events.batches_of(path, numbers=False)} == {"string"}
    path.write_bytes(content({"time": times, "ok": repeated(TEXT)}))
    with pytest.raises(UsageError, match="texts of ok take 2 GiB"):
        list(events.batches_of(path, numbers=False))
    path.write_bytes(content({"time": times, "ok": ok, "service": pa.array([[[1]]] * ROWS)}))
    with pytest.raises(UsageError, match=r"events\.parquet.*nested"):
        list(events.batches_of(path, numbers=False))
