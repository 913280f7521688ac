"""`nephoscope export RUN…`: the samples of runs, each with the status of its trial; a data set."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import command
from nephoscope.cli.kit.named import RUN
from nephoscope.cli.kit.options import argument
from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.core.naming import plural

if TYPE_CHECKING:
    from nephoscope.store import StoredRun
    from nephoscope.store.engines.question import Engine

RECORDING = "recording"
FORMATS = ("csv", "jsonl", "parquet", RECORDING)
EARLIER_FORMATS = ("json",)
"""Accepted and not shown: scripts use it for jsonl."""


@dataclass(frozen=True, slots=True)
class _ExportArguments:
    names: Sequence[str] = argument(RUN, nargs=-1, required=True, metavar="RUN…")
    file_format: str = options.option(
        "--format",
        click.Choice((*FORMATS, *EARLIER_FORMATS)),
        "Format of the output; jsonl is one JSON object per line, recording what targets of kind "
        "recorded answer.",
        metavar=f"[{'|'.join(FORMATS)}]",
        default="csv",
    )
    to: Path | None = options.option(
        "-o --output", options.FILE, "File to write [default: stdout]."
    )
    dataset: Path | None = options.option(
        "--dataset",
        options.DIRECTORY,
        "New folder for a data set: tables, Croissant and Data Package metadata, checksums.",
    )
    licence: str = options.option(
        "--license", "ID", "Licence of the data set: SPDX identifier or address.", default=""
    )
    creators: Sequence[str] = options.repeated(
        "--creator", "NAME", "Person or organisation that made the data set."
    )
    title: str = options.option("--title", "TEXT", "Title of the data set.", default="")
    description: str = options.option(
        "--description", "TEXT", "Description of the data set.", default=""
    )
    url: str = options.option("--url", "URL", "Page of the data set.", default="")
    engine: str | None = options.ENGINE
    store: Path | None = options.STORE


@command(
    is_work=True,
    examples=(
        "latest --format parquet -o samples.parquet",
        "latest --dataset vm-survey --license CC-BY-4.0 --creator 'A. Author'",
    ),
)
def export(args: _ExportArguments) -> None:
    """Export samples as CSV, JSON lines, Parquet or recording.

    RUN is a run id, a unique prefix of one, or `latest`. With --dataset, writes a folder that can
    be published: samples, a table of the trials of each benchmark, runs and metrics, described in
    croissant.json and datapackage.json, with the SHA-256 digest of each file.
    """
    from nephoscope.store import Store
    from nephoscope.store import export as exporting
    from nephoscope.store.engines import using

    runs = Store(args.store)
    # Two names of one run, such as its id and `latest`, are one run.
    stored = list({run.id: run for run in map(runs.open, args.names)}.values())
    if args.dataset is not None:
        _write_dataset(args, args.dataset, stored, str(runs.path))
        return
    if args.to is None and args.file_format == "parquet" and sys.stdout.isatty():
        raise UsageError(
            "Parquet is a binary format and is not written to stdout.", "Add --output FILE.parquet."
        )
    if args.file_format == RECORDING:
        _name_damaged(stored, None)
        _record(stored, args.to)
        return
    with using(args.engine, str(runs.path)) as engine:
        _name_damaged(stored, engine)
        if args.to is not None:
            exporting.write(stored, args.file_format, args.to, engine)
            output.log(f"Written: {args.to}")
            return
        sys.stdout.flush()
        exporting.export(stored, args.file_format, sys.stdout.buffer, engine)
        sys.stdout.buffer.flush()


def _record(stored: Sequence[StoredRun], to: Path | None) -> None:
    """Writes a recording of a run. Raises UsageError."""
    from nephoscope.store import recording

    if len(stored) != 1:
        raise UsageError("A recording is of one run.", "Name one RUN.")
    if to is None:
        raise UsageError("A recording is a file of its own.", "Add --output FILE.")
    recording.write(stored[0], to)
    output.log(f"Written: {to}")


def _write_dataset(
    args: _ExportArguments, folder: Path, runs: Sequence[StoredRun], store: str
) -> None:
    """Writes the data set, and states its files."""
    from nephoscope.features.datasets.folder import write_dataset
    from nephoscope.features.datasets.metadata import About
    from nephoscope.store.engines import using

    if args.to is not None or args.file_format == RECORDING:
        raise UsageError(
            "--dataset is a folder of tables, and takes neither --output nor --format recording.",
            "Omit the one or the other.",
        )
    about = About(
        name=folder.name,
        title=args.title or folder.name,
        description=args.description or _description(runs),
        licence=args.licence,
        creators=tuple(args.creators),
        url=args.url,
        published=f"{datetime.now(UTC):%Y-%m-%d}",
    )
    with using(args.engine, store) as engine:
        _name_damaged(runs, engine)
        files = write_dataset(runs, folder, about, args.file_format, engine)
    rows = [
        (file.name, units.format_value(file.size_bytes, "bytes"), file.sha256[:16])
        for file in files
    ]
    output.say(output.table(("FILE", "SIZE", "SHA-256"), rows, right=(1,)))
    output.log(f"Written: {folder}. Check it with `sha256sum --check SHA256SUMS`.")


def _description(runs: Sequence[StoredRun]) -> str:
    """Returns the questions of the runs, where the publisher gave no description."""
    questions = dict.fromkeys(str(run.manifest.question or run.manifest.plan_name) for run in runs)
    return f"Measurements by Nephoscope. {' '.join(questions)}"


def _name_damaged(runs: Sequence[StoredRun], engine: Engine | None) -> None:
    """Warns of trials whose samples are missing from an export because their files are damaged."""
    from nephoscope.store.export import damaged_trials

    for run, count in zip(runs, damaged_trials(runs, engine), strict=True):
        if count:
            output.warn(
                f"{plural(count, 'trial')} of {run.id} cannot be read and will be missing. "
                "`nephoscope verify` names the files."
            )
