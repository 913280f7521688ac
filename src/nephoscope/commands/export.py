"""`nephoscope export RUN`: the samples as CSV, JSON or Parquet, with what became of their trial."""

from __future__ import annotations

import sys
from pathlib import Path

from nephoscope.commands import output
from nephoscope.errors import UsageError


def run(name: str, *, file_format: str, to: Path | None, store: Path | None) -> int:
    """Writes every sample of a run, invalid and warm-up trials too; column `status` tells them.

    Raises UsageError for Parquet on a terminal, StoreError when a file cannot be written.
    """
    from nephoscope.store import Store
    from nephoscope.store import export as exporting

    stored = Store(store).open(name)
    if to is not None:
        exporting.write(stored, file_format, to)
        output.log(f"Written: {to}")
        return 0
    if file_format == "parquet" and sys.stdout.isatty():
        raise UsageError(
            "Parquet is a binary format and is not written to stdout.", "Add --output FILE.parquet."
        )
    content = exporting.export(stored, file_format)
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
    return 0
