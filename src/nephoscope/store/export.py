"""Samples out of the store, for other programs: one row a sample, factors as columns.

Runs are read twice, once for the levels of their factors and once for the rows, so that no more
than a batch of samples is held at once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nephoscope.core.errors import UsageError
from nephoscope.core.format_versions import DOCUMENT
from nephoscope.store import csv_rows
from nephoscope.store.batch import Batch
from nephoscope.store.engines.question import Engine, size_of
from nephoscope.store.files import translating_os_errors, writing_atomically
from nephoscope.store.grouped_samples import used_texts
from nephoscope.store.run import StoredRun
from nephoscope.store.trialfile import DAMAGED, SCHEMA, column_lists

FORMATS = ("csv", "jsonl", "parquet")
EARLIER_NAMES = {"json": "jsonl"}
"""Names that the formats had; accepted, since scripts use them."""

FORMULA = frozenset("=+-@\t\r")
"""What a formula begins with in a spreadsheet."""

FACTOR_PREFIX = "factor_"
"""Factors are named by benchmarks; the prefix keeps them apart from our own columns."""

_PART_BYTES, _BLOCK_PARTS = 8 << 20, 16
"""Size of what an engine reads of a run at once, and how many of these are asked for at once."""

GROUP_ROWS = 65_536
"""Rows of a Parquet export from which on a row group is written."""

_COLUMNS = pa.schema(
    [
        *((name, pa.string()) for name in ("run", "trial")),
        *((name, pa.int64()) for name in ("position", "round")),
        ("warmup", pa.bool_()),
        *((name, pa.string()) for name in ("status", "target", "benchmark", "metric", "unit")),
        ("better", pa.string()),
        ("value", pa.float64()),
        *((name, pa.int64()) for name in ("count", "at_ns")),
        ("recorded", pa.bool_()),
    ]
)
"""Columns of every export, in their order; those of the factors follow."""


def export(
    runs: Sequence[StoredRun], format: str, stream: BinaryIO, engine: Engine | None = None
) -> None:
    """Writes all samples of runs, in the order of execution, warm-up and invalid trials included.

    Columns: run, trial, position, round, warmup, status, target, benchmark, metric, unit, better,
    value, count, at_ns, recorded (whether the target answered from a recording), and
    `factor_<name>` for each factor (empty where a sample has none).
    format: csv (RFC 4180, with a header), jsonl (one JSON object a line,
    with `schema_version`) or parquet. engine: reads the runs; None for this process.
    Raises UsageError for another format.
    """
    format = EARLIER_NAMES.get(format, format)
    if format not in FORMATS:
        raise UsageError(f"There is no format '{format}'.", f"Use one of {', '.join(FORMATS)}.")
    parts = [part for run in runs for part in _parts(run)]
    total = sum(map(size_of, runs))
    if engine is None or not engine.is_worth(len(parts), total):
        schema = _schema(_texts(run) for run in runs)
        tables: Iterable[pa.Table] = (
            _flat(batch, schema, recorded)
            for run in runs
            for recorded in [frozenset(run.manifest.recorded_targets)]
            for batch in run.batches(SCHEMA.names)
        )
    else:
        schema = _schema(engine.each(_part_texts, parts, size_bytes=total))
        tables = _tables(engine, partial(_part_tables, schema), parts, total)
    if format == "parquet":
        with pq.ParquetWriter(stream, schema, compression="zstd") as writer:
            for table in _joined(tables):
                writer.write_table(table)
        return
    if format == "csv":
        stream.write(csv_rows.header(schema.names))
        for table in tables:
            stream.write(csv_rows.rows(table, schema.names, cell))
        return
    for text in _json_lines(tables):
        stream.write(text.encode())


Part = tuple[Path, tuple[int, int]]
"""Folder of a run, and share of its trials."""


def damaged_trials(runs: Sequence[StoredRun], engine: Engine | None = None) -> list[int]:
    """Returns the number of trials of each run whose file is damaged.

    engine: reads the runs; None for this process.
    """
    paths = [run.path for run in runs]
    if engine is None:
        return [_damaged_trials(path) for path in paths]
    return list(engine.each(_damaged_trials, paths, size_bytes=sum(map(size_of, runs))))


def _damaged_trials(path: Path) -> int:
    return sum(record.failure_name == DAMAGED for record in StoredRun(path).records())


def _parts(run: StoredRun) -> list[Part]:
    shares = max(1, size_of(run) // _PART_BYTES)
    return [(run.path, (number, shares)) for number in range(shares)]


def _part_texts(part: Part) -> set[str]:
    return _texts(StoredRun(part[0]), part[1])


def _part_tables(schema: pa.Schema, part: Part) -> list[pa.Table]:
    run = StoredRun(part[0])
    recorded = frozenset(run.manifest.recorded_targets)
    return [_flat(batch, schema, recorded) for batch in run.batches(SCHEMA.names, part[1])]


def _tables(
    engine: Engine,
    function: Callable[[Part], list[pa.Table]],
    parts: Sequence[Part],
    total: int,
) -> Iterator[pa.Table]:
    """Yields the rows of parts; some of them are in memory at a time."""
    for first in range(0, len(parts), _BLOCK_PARTS):
        block = parts[first : first + _BLOCK_PARTS]
        for tables in engine.each(function, block, size_bytes=total):
            yield from tables


def write(runs: Sequence[StoredRun], format: str, path: Path, engine: Engine | None = None) -> None:
    """Writes an export to a file: whole, or not at all. StoreError when it cannot be written."""
    if not path.parent.exists():
        raise UsageError(
            f"{path} cannot be written: there is no directory {path.parent}.",
            f"Create it: `mkdir -p {path.parent}`.",
        )
    if path.exists() and not path.is_file():
        # A pipe or a device (/dev/stdout) cannot be renamed over.
        with translating_os_errors(path, "written"), path.open("wb") as stream:
            export(runs, format, stream, engine)
            return
    with writing_atomically(Path(os.path.realpath(path))) as stream:
        export(runs, format, stream, engine)


def schema_of(runs: Sequence[StoredRun]) -> pa.Schema:
    """Returns the columns of an export of these runs with their types."""
    return _schema(_texts(run) for run in runs)


def flat_table(run: StoredRun) -> pa.Table:
    """Returns the samples as one table with factors as columns; see `export`."""
    schema = _schema([_texts(run)])
    recorded = frozenset(run.manifest.recorded_targets)
    tables = [_decoded(_flat(batch, schema, recorded)) for batch in run.batches(SCHEMA.names)]
    return pa.concat_tables(tables or [schema.empty_table()])


def factor_columns(factors: Sequence[Mapping[str, Any]]) -> dict[str, pa.Array]:
    """Returns a column `factor_<name>` for each factor of these rows; null where one has none."""
    return {
        f"{FACTOR_PREFIX}{name}": _column(kind, [levels.get(name) for levels in factors])
        for name, kind in _kinds(factors).items()
    }


def _schema(texts: Iterable[set[str]]) -> pa.Schema:
    """Returns the columns of an export. texts: the distinct factors of each part."""
    every = sorted(set().union(*texts))
    kinds = _kinds([json.loads(text) for text in every])
    fields = [pa.field(f"{FACTOR_PREFIX}{name}", kind) for name, kind in kinds.items()]
    return pa.schema([*_COLUMNS, *fields])


def _texts(run: StoredRun, share: tuple[int, int] = (0, 1)) -> set[str]:
    """Returns the distinct factors of the samples of a run, as texts."""
    return {
        text
        for batch in run.batches(["factors"], share)
        for text in used_texts(batch.table["factors"])[0]
    }


def _kinds(factors: Iterable[Mapping[str, Any]]) -> dict[str, pa.DataType]:
    """Returns the type of each factor: numbers where all levels are numbers, else texts."""
    types: dict[str, set[type]] = {}
    for levels in factors:
        for name, level in levels.items():
            types.setdefault(name, set()).update({type(level)} - {type(None)})
    return {name: _kind(types[name]) for name in sorted(types)}


def _kind(types: set[type]) -> pa.DataType:
    if not types or not types <= {int, float}:
        return pa.string()
    return pa.int64() if types == {int} else pa.float64()


def _column(kind: pa.DataType, levels: Sequence[Any]) -> pa.Array:
    if kind == pa.string():
        levels = [
            v if v is None or isinstance(v, str) else json.dumps(v, sort_keys=True) for v in levels
        ]
    elif kind == pa.float64():
        levels = [None if v is None else float(v) for v in levels]
    return pa.array(levels, kind)


def _flat(batch: Batch, schema: pa.Schema, recorded: frozenset[str]) -> pa.Table:
    """Returns the rows of a batch; columns of few distinct values as dictionaries.

    recorded: the targets that answered from a recording.
    """
    records = [record for record, _ in batch.trials]
    trial = np.repeat(np.arange(len(records)), [rows for _, rows in batch.trials])
    distinct, setting = used_texts(batch.table["factors"])
    factors = [json.loads(text) for text in distinct]
    of_trials = {
        "position": [record.position for record in records],
        "warmup": [record.key.round < 1 for record in records],
        "status": [record.status.value for record in records],
        "recorded": [record.key.target in recorded for record in records],
    }
    columns = {}
    for field in schema:
        if field.name.startswith(FACTOR_PREFIX):
            name = field.name.removeprefix(FACTOR_PREFIX)
            levels = _column(field.type, [own.get(name) for own in factors])
            columns[field.name] = pa.DictionaryArray.from_arrays(setting, levels)
        elif field.name in of_trials:
            values = pa.array(of_trials[field.name], field.type)
            columns[field.name] = pa.DictionaryArray.from_arrays(trial, values)
        else:
            columns[field.name] = batch.table[field.name]
    return pa.table(columns)


def _decoded(table: pa.Table) -> pa.Table:
    kinds = [
        field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        for field in table.schema
    ]
    return table.cast(pa.schema(zip(table.schema.names, kinds, strict=True)))


def _joined(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yields tables of many rows, so that a trial of few samples is no row group of its own."""
    held: list[pa.Table] = []
    rows = 0
    for table in tables:
        held.append(_decoded(table))
        rows += table.num_rows
        if rows >= GROUP_ROWS:
            yield pa.concat_tables(held)
            held, rows = [], 0
    if held:
        yield pa.concat_tables(held)


def cell(value: Any) -> Any:
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


def _json_lines(tables: Iterable[pa.Table]) -> Iterator[str]:
    for table in tables:
        names = table.schema.names
        for row in zip(*column_lists(table, names), strict=True):
            values = {"schema_version": DOCUMENT.version, **dict(zip(names, row, strict=True))}
            yield json.dumps(values) + "\n"
