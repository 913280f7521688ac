"""`nephoscope export RUN…`: the samples of runs, each with the status of its trial."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import command
from nephoscope.cli.kit.named import RUN
from nephoscope.cli.kit.options import argument
from nephoscope.core.errors import UsageError
from nephoscope.core.naming import plural

if TYPE_CHECKING:
    from nephoscope.store import StoredRun

FORMATS = ("csv", "jsonl", "parquet")
EARLIER_FORMATS = ("json",)
"""Accepted and not shown: scripts use it for jsonl."""


@dataclass(frozen=True, slots=True)
class _ExportArguments:
    names: Sequence[str] = argument(RUN, nargs=-1, required=True, metavar="RUN…")
    file_format: str = options.option(
        "--format",
        click.Choice((*FORMATS, *EARLIER_FORMATS)),
        "Format of the output; jsonl is one JSON object per line.",
        metavar=f"[{'|'.join(FORMATS)}]",
        default="csv",
    )
    to: Path | None = options.option(
        "-o --output", options.FILE, "File to write [default: stdout]."
    )
    engine: str | None = options.ENGINE
    store: Path | None = options.STORE


@command()
def export(args: _ExportArguments) -> None:
    """Export the samples of runs as CSV, JSON lines or Parquet.

    RUN is a run id, a unique prefix of one, or `latest`.
    """
    from nephoscope.store import Store
    from nephoscope.store import export as exporting
    from nephoscope.store.engines import using

    runs = Store(args.store)
    # Two names of one run, such as its id and `latest`, are one run.
    stored = list({run.id: run for run in map(runs.open, args.names)}.values())
    _name_damaged(stored)
    if args.to is None and args.file_format == "parquet" and sys.stdout.isatty():
        raise UsageError(
            "Parquet is a binary format and is not written to stdout.", "Add --output FILE.parquet."
        )
    with using(args.engine, str(runs.path)) as engine:
        if args.to is not None:
            exporting.write(stored, args.file_format, args.to, engine)
            output.log(f"Written: {args.to}")
            return
        sys.stdout.flush()
        exporting.export(stored, args.file_format, sys.stdout.buffer, engine)
        sys.stdout.buffer.flush()


def _name_damaged(runs: Sequence[StoredRun]) -> None:
    """Warns of trials whose samples are missing from an export because their files are damaged."""
    from nephoscope.store.trialfile import DAMAGED

    for run in runs:
        count = sum(record.failure_name == DAMAGED for record in run.records())
        if count:
            output.warn(
                f"{plural(count, 'trial')} of {run.id} cannot be read and will be missing. "
                "`nephoscope verify` names the files."
            )
