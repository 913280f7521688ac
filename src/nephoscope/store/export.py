"""Samples out of the store, for other programs: one row a sample, factors as columns."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nephoscope.documents import SCHEMA_VERSION
from nephoscope.errors import UsageError
from nephoscope.store.files import translating_os_errors, write_atomically
from nephoscope.store.run import StoredRun
from nephoscope.store.trialfile import SCHEMA

FORMATS = ("csv", "jsonl", "parquet")
EARLIER_NAMES = {"json": "jsonl"}
"""Names that the formats had; accepted, since scripts use them."""

FORMULA = frozenset("=+-@\t\r")
"""What a formula begins with in a spreadsheet."""

FACTOR_PREFIX = "factor_"
"""Factors are named by benchmarks; the prefix keeps them apart from our own columns."""


def export(runs: Sequence[StoredRun], format: str) -> bytes:
    """All samples of runs, in the order of execution, warm-up and invalid trials included.

    Columns: run, trial, position, round, warmup, status, target, benchmark, metric, unit, better,
    value, count, at_ns, and `factor_<name>` for each factor (empty where a sample has none).
    format: csv (RFC 4180, with a header), jsonl (one JSON object a line,
    with `schema_version`) or parquet.
    Raises UsageError for another format.
    """
    format = EARLIER_NAMES.get(format, format)
    if format not in FORMATS:
        raise UsageError(f"There is no format '{format}'.", f"Use one of {', '.join(FORMATS)}.")
    table = _together([flat_table(run) for run in runs])
    if format == "parquet":
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]
    return _csv(table) if format == "csv" else _json_lines(table)


def write(runs: Sequence[StoredRun], format: str, path: Path) -> None:
    """Writes an export to a file: whole, or not at all. StoreError when it cannot be written."""
    if not path.parent.exists():
        raise UsageError(
            f"{path} cannot be written: there is no directory {path.parent}.",
            f"Create it: `mkdir -p {path.parent}`.",
        )
    content = export(runs, format)
    if path.exists() and not path.is_file():
        # A pipe or a device (/dev/stdout) cannot be renamed over.
        with translating_os_errors(path, "written"), path.open("wb") as stream:
            stream.write(content)
            return
    write_atomically(Path(os.path.realpath(path)), content)


def flat_table(run: StoredRun) -> pa.Table:
    """Returns the samples as one table with factors as columns; see `export`."""
    trials = run.tables()
    samples = pa.concat_tables([table for _, table in trials] or [SCHEMA.empty_table()])
    records = [record for record, table in trials for _ in range(table.num_rows)]
    columns: dict[str, Any] = {name: samples[name] for name in SCHEMA.names if name != "factors"}
    columns["position"] = pa.array([record.position for record in records], pa.int64())
    columns["warmup"] = pa.array([record.key.round < 1 for record in records], pa.bool_())
    columns["status"] = pa.array([record.status.value for record in records], pa.string())
    factors = [json.loads(text) for text in samples["factors"].to_pylist()]
    return pa.table({**{name: columns[name] for name in _ORDER}, **factor_columns(factors)})


def factor_columns(factors: Sequence[Mapping[str, Any]]) -> dict[str, pa.Array]:
    """Returns a column `factor_<name>` for each factor of these rows; null where one has none."""
    return {
        f"{FACTOR_PREFIX}{name}": _column([levels.get(name) for levels in factors])
        for name in sorted({name for levels in factors for name in levels})
    }


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    """Returns one table of all rows; a factor of different types becomes text."""
    types: dict[str, set[pa.DataType]] = {}
    for table in tables:
        for field in table.schema:
            types.setdefault(field.name, set()).add(field.type)
    mixed = {name for name, kinds in types.items() if len(kinds) > 1 and pa.string() in kinds}
    for name in mixed:
        tables = [
            table.set_column(table.schema.names.index(name), name, table[name].cast(pa.string()))
            if name in table.schema.names
            else table
            for table in tables
        ]
    joined = pa.concat_tables(tables, promote_options="permissive")
    return joined.select([*_ORDER, *sorted(set(joined.schema.names) - set(_ORDER))])


_ORDER = (
    *("run", "trial", "position", "round", "warmup", "status", "target", "benchmark", "metric"),
    *("unit", "better", "value", "count", "at_ns"),
)


def _column(levels: Sequence[Any]) -> pa.Array:
    """A column of numbers where all levels are numbers, else of texts."""
    types = {type(level) for level in levels if level is not None}
    if types and types <= {int}:
        return pa.array(levels, pa.int64())
    if types and types <= {int, float}:
        return pa.array([None if v is None else float(v) for v in levels], pa.float64())
    texts = [
        v if v is None or isinstance(v, str) else json.dumps(v, sort_keys=True) for v in levels
    ]
    return pa.array(texts, pa.string())


def _csv(table: pa.Table) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(table.schema.names)
    for row in table.to_pylist():
        writer.writerow([_cell(value) for value in row.values()])
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    """A cell of a CSV file; what a spreadsheet would take for a formula gets an apostrophe."""
    if isinstance(value, str) and value[:1] in FORMULA and not _is_number(value):
        return f"'{value}"
    return "" if value is None else value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _json_lines(table: pa.Table) -> bytes:
    version = {"schema_version": SCHEMA_VERSION}
    return "".join(json.dumps({**version, **row}) + "\n" for row in table.to_pylist()).encode()
