"""`nephoscope export RUN…`: the samples of runs, each with the status of its trial."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from nephoscope.cli.kit import options, output
from nephoscope.core.errors import UsageError

FORMATS = ("csv", "jsonl", "parquet")
EARLIER_FORMATS = ("json",)
"""Accepted and not shown: scripts use it for jsonl."""


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="RUN…")
@options.option(
    "--format file_format",
    click.Choice((*FORMATS, *EARLIER_FORMATS)),
    "Format of the output; jsonl is one JSON object per line.",
    metavar=f"[{'|'.join(FORMATS)}]",
    default="csv",
)
@options.option("-o --output to", options.FILE, "File to write [default: stdout].")
@options.STORE
def export(names: Sequence[str], file_format: str, to: Path | None, store: Path | None) -> None:
    """Export the samples of runs as CSV, JSON lines or Parquet.

    RUN is a run id, a unique prefix of one, or `latest`.
    """
    from nephoscope.store import Store
    from nephoscope.store import export as exporting

    runs = Store(store)
    # Two names of one run, such as its id and `latest`, are one run.
    stored = list({run.id: run for run in map(runs.open, names)}.values())
    if to is not None:
        exporting.write(stored, file_format, to)
        output.log(f"Written: {to}")
        return
    if file_format == "parquet" and sys.stdout.isatty():
        raise UsageError(
            "Parquet is a binary format and is not written to stdout.", "Add --output FILE.parquet."
        )
    sys.stdout.flush()
    exporting.export(stored, file_format, sys.stdout.buffer)
    sys.stdout.buffer.flush()
