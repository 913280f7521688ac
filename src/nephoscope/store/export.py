"""Samples out of the store, for other programs: one row a sample, factors as columns."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from nephoscope.errors import UsageError
from nephoscope.model import TrialRecord
from nephoscope.store.files import translating_os_errors, write_atomically
from nephoscope.store.run import StoredRun
from nephoscope.store.trialfile import SCHEMA

FORMATS = ("csv", "json", "parquet")

FACTOR_PREFIX = "factor_"
"""Factors are named by benchmarks; the prefix keeps them apart from our own columns."""


def export(run: StoredRun, format: str) -> bytes:
    """All samples of a run, in the order of execution, warm-up and invalid trials included.

    Columns: run, trial, position, round, warmup, status, target, benchmark, metric, unit, better,
    value, count, at_ns, and `factor_<name>` for each factor (empty where a sample has none).
    format: csv (RFC 4180, with a header), json (one object a line) or parquet.
    Raises UsageError for another format.
    """
    if format not in FORMATS:
        raise UsageError(f"There is no format '{format}'.", f"Use one of {', '.join(FORMATS)}.")
    table = flat_table(run)
    if format == "parquet":
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]
    return _csv(table) if format == "csv" else _json_lines(table)


def write(run: StoredRun, format: str, path: Path) -> None:
    """Writes an export to a file: whole, or not at all. StoreError when it cannot be written."""
    content = export(run, format)
    with translating_os_errors(path, "written"):
        path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        # A pipe or a device (/dev/stdout) cannot be renamed over.
        with translating_os_errors(path, "written"), path.open("wb") as stream:
            stream.write(content)
            return
    write_atomically(Path(os.path.realpath(path)), content)


def flat_table(run: StoredRun) -> pa.Table:
    """The samples as one table with factors as columns; see `export`."""
    parts = [_flat(record, table) for record, table in run.tables()]
    if not parts:
        return _flat(None, SCHEMA.empty_table())
    names = sorted({name for part in parts for name in part.schema.names} - _OWN)
    whole = [_with_columns(part, names, parts) for part in parts]
    return pa.concat_tables(whole)


_OWN = {*SCHEMA.names, "position", "warmup", "status"} - {"factors"}
_ORDER = [
    *("run", "trial", "position", "round", "warmup", "status", "target", "benchmark", "metric"),
    *("unit", "better", "value", "count", "at_ns"),
]


def _flat(record: TrialRecord | None, table: pa.Table) -> pa.Table:
    rows = table.num_rows
    columns = {name: table[name] for name in SCHEMA.names if name != "factors"}
    position = record.position if record else 0
    columns["position"] = pa.array([position] * rows, pa.int64())
    columns["warmup"] = pa.array([bool(record and record.key.round < 1)] * rows, pa.bool_())
    columns["status"] = pa.array([record.status.value if record else ""] * rows, pa.string())
    factors = [json.loads(text) for text in table["factors"].to_pylist()]
    names = sorted({name for of_row in factors for name in of_row})
    out = pa.table({name: columns[name] for name in _ORDER})
    for name in names:
        levels = [_text(of_row.get(name)) for of_row in factors]
        out = out.append_column(f"{FACTOR_PREFIX}{name}", _typed(levels))
    return out


def _text(level: object) -> object:
    """Levels are JSON scalars; anything else becomes its JSON text."""
    plain = level is None or isinstance(level, bool | int | float | str)
    return level if plain else json.dumps(level, sort_keys=True)


def _typed(levels: Sequence[object]) -> pa.Array:
    """A column of numbers where all levels are numbers, else of texts."""
    known = [level for level in levels if level is not None]
    if known and all(isinstance(level, int) and not isinstance(level, bool) for level in known):
        return pa.array(levels, pa.int64())
    if known and all(isinstance(v, int | float) and not isinstance(v, bool) for v in known):
        return pa.array([None if v is None else float(str(v)) for v in levels], pa.float64())
    texts = [None if v is None else v if isinstance(v, str) else json.dumps(v) for v in levels]
    return pa.array(texts, pa.string())


def _with_columns(part: pa.Table, names: Sequence[str], parts: Sequence[pa.Table]) -> pa.Table:
    """The part with every factor column of the run, in one type for all parts."""
    out = part.select(_ORDER)
    for name in names:
        kinds = {p.schema.field(name).type for p in parts if name in p.schema.names}
        kind = _common(kinds)
        if name in part.schema.names:
            column = part[name].cast(kind)
        else:
            column = pa.nulls(part.num_rows, kind)
        out = out.append_column(name, column)
    return out


def _common(kinds: set[pa.DataType]) -> pa.DataType:
    if len(kinds) == 1:
        return next(iter(kinds))
    return pa.string() if pa.string() in kinds else pa.float64()


def _csv(table: pa.Table) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(table.schema.names)
    for row in table.to_pylist():
        writer.writerow(["" if value is None else value for value in row.values()])
    return text.getvalue().encode()


def _json_lines(table: pa.Table) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode()
