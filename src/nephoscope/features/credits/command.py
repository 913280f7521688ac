"""`nephoscope credits`: the token bucket behind a series of rates, stored or measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephoscope.cli.kit import options
from nephoscope.cli.kit.command import Document, Query, command
from nephoscope.cli.kit.named import RUN
from nephoscope.cli.kit.options import argument, option
from nephoscope.cli.kit.section_output import present
from nephoscope.core.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.features.credits.files import FileSeries
    from nephoscope.features.credits.records import BurstCredits

UNITS = ("per_s", "bytes_per_s", "bits_per_s", "ratio", "none")


@dataclass(frozen=True, slots=True)
class _CreditsArguments:
    file: Path | None = argument(options.PATH, required=False, metavar="[FILE.csv]")
    name: str | None = option("--run", RUN, "Stored run, instead of FILE.")
    server_type: str = option(
        "--type",
        "PROVIDER/TYPE",
        "Imported server type with a day of rates, or `all`, instead of FILE.",
        default="",
    )
    unit: str = option("--unit", click.Choice(UNITS), "Unit of the rates of FILE.", default="per_s")
    confidence: float = options.CONFIDENCE
    to: Path | None = options.REPORT_FILE
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    prints=Document("burst_credits", ".features.credits.records:BurstCredits"),
    requests=Query(),
    examples=(
        "rates.csv",
        "rates.csv --unit bytes_per_s",
    ),
)
def credits_(args: _CreditsArguments) -> int:
    """Find burst credits in rates over time: CPU, disk or network.

    FILE.csv has a column of the time, one of the rate, and may have one of the busy time; columns
    of text name several series. `nephoscope cloud credits` measures a rented machine.
    """
    from nephoscope.features.credits.section import section

    if sum(map(bool, (args.file, args.name, args.server_type))) != 1:
        raise UsageError(
            "`credits` needs a file, a stored run or an imported server type.",
            "Use FILE.csv, --run RUN or --type PROVIDER/TYPE.",
        )
    if args.server_type:
        analysis = _of_types(args)
    else:
        analysis = _of_file(args.file, args) if args.file is not None else _of_run(args)
    page = section(analysis)
    source = str(args.file or args.name or args.server_type)
    return present(analysis, page, as_json=args.as_json, to=args.to, source=source)


def _of_file(file: Path, args: _CreditsArguments) -> BurstCredits:
    from nephoscope.features.credits import files

    every, notes = files.read(file)
    return _of_series(every, notes, str(file), args)


def _of_types(args: _CreditsArguments) -> BurstCredits:
    from nephoscope.features.credits import imported_types
    from nephoscope.store import Store

    every = imported_types.read(Store(args.store).path, args.server_type)
    note = "Imported rates: one machine of each type, measured once."
    return _of_series(every, [note], "--type", args)


def _of_series(
    every: Sequence[FileSeries], notes: Sequence[str], source: str, args: _CreditsArguments
) -> BurstCredits:
    from nephoscope.features.credits.records import BurstCredits
    from nephoscope.features.credits.result import series_of
    from nephoscope.stats.statistics.values import Refused

    analysed = []
    for series in every:
        try:
            made = series_of(
                series.name,
                "",
                args.unit,
                series.at_s,
                series.rates,
                series.shares(),
                args.confidence,
            )
        except Refused as refused:
            of_series = f" ({series.name})" if series.name else ""
            raise UsageError(f"{source}{of_series}: {refused}") from None
        analysed.append(replace(made, left_out=dict(Counter(series.left_out))))
    return BurstCredits(tuple(analysed), tuple(notes))


def _of_run(args: _CreditsArguments) -> BurstCredits:
    from nephoscope.core.model import part_of
    from nephoscope.features.credits.records import BurstCredits
    from nephoscope.results import analyse_run
    from nephoscope.store import Store

    run = Store(args.store).open(str(args.name))
    record = part_of(analyse_run.build(run, confidence=args.confidence).parts, BurstCredits)
    if record is None:
        raise UsageError(
            f"Run {run.id} has no rates over time of a load of 5 s or more, and its CPU trials "
            "show no credit.",
            "Load it for longer: `nephoscope bench load.cpu --set duration_ns=15min`.",
        )
    return record
