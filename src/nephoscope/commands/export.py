"""`nephoscope export RUN`: the samples as CSV, JSON or Parquet, with what became of their trial."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING

from nephoscope.commands import output
from nephoscope.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from nephoscope.model import TrialRecord
    from nephoscope.store import StoredRun


def run(name: str, *, file_format: str, to: Path | None, store: Path | None) -> int:
    """Writes every sample of a run, invalid and warm-up trials too; column `status` tells them.

    Raises UsageError for Parquet on a terminal, StoreError when a file cannot be written.
    """
    from nephoscope.store import Store

    stored = Store(store).open(name)
    writer = WRITERS[file_format]
    if to is None:
        _to_stdout(writer, stored, file_format)
    else:
        _to_file(writer, stored, to)
    return 0


def _to_stdout(writer: Writer, stored: StoredRun, file_format: str) -> None:
    if file_format == "parquet" and sys.stdout.isatty():
        raise UsageError("Parquet is not text.", "Name a file: --output samples.parquet.")
    sys.stdout.flush()
    writer(sys.stdout.buffer, _tables(stored))
    sys.stdout.buffer.flush()


def _to_file(writer: Writer, stored: StoredRun, path: Path) -> None:
    from nephoscope.store.files import told

    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    with told(path, "written"):
        try:
            with aside.open("wb") as stream:
                writer(stream, _tables(stored))
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)
    output.log(f"Written: {path}")


def _status(record: TrialRecord) -> str:
    """valid, invalid, failed; `warmup` for a valid trial that is never analysed."""
    if record.key.round <= 0 and record.status.value == "valid":
        return "warmup"
    return record.status.value


def _tables(stored: StoredRun) -> Iterator[pa.Table]:
    import pyarrow as pa

    for record, table in stored.tables():
        column = pa.array([_status(record)] * table.num_rows, pa.string())
        yield table.replace_schema_metadata(None).append_column("status", column)


def _schema() -> pa.Schema:
    import pyarrow as pa

    from nephoscope.store.trialfile import SCHEMA

    return SCHEMA.append(pa.field("status", pa.string()))


def _csv(stream: IO[bytes], tables: Iterator[pa.Table]) -> None:
    import pyarrow.csv

    with pyarrow.csv.CSVWriter(stream, _schema()) as writer:
        for table in tables:
            writer.write_table(table)


def _json(stream: IO[bytes], tables: Iterator[pa.Table]) -> None:
    """One array with a sample a line; factors are objects, not texts."""
    stream.write(b"[")
    before = "\n"
    for table in tables:
        for row in table.to_pylist():
            row["factors"] = json.loads(row["factors"])
            stream.write((before + json.dumps(row, ensure_ascii=False)).encode())
            before = ",\n"
    stream.write(b"\n]\n")


def _parquet(stream: IO[bytes], tables: Iterator[pa.Table]) -> None:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetWriter(stream, _schema(), compression="zstd") as writer:
        for table in tables:
            writer.write_table(table)


Writer = Callable[[IO[bytes], "Iterator[pa.Table]"], None]

WRITERS: Mapping[str, Writer] = {"csv": _csv, "json": _json, "parquet": _parquet}
"""Format -> writer; those of `cli.FORMATS`, in its order (a test compares the two)."""
