"""`nephoscope import FILE`: another tool's results into the store, then our analysis of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephoscope.cli.kit import measuring, metric_table, options, output
from nephoscope.cli.kit.command import Command, Document, Excluded, command
from nephoscope.cli.kit.documents import RESULT
from nephoscope.cli.kit.options import argument, flag
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Shape

if TYPE_CHECKING:
    from nephoscope.store import StoredRun


class _Command(Command):
    """The command, whose help lists the formats of the registry."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from nephoscope.store.imports import formats

        super().format_help_text(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(f"Tools: {', '.join(formats.tools())}.")


@dataclass(frozen=True, slots=True)
class _ImportArguments:
    files: tuple[Path, ...] = argument(options.PATH, nargs=-1, required=True, metavar="FILE...")
    where: tuple[str, ...] = options.repeated(
        "--where",
        "KEY=VALUE",
        "Import only figures with this test, metric or factor, e.g. vendor=aws.",
    )
    parallel: bool = flag(
        "--parallel",
        "Sum the files: parts of one run that ran at the same time, such as load generators.",
    )
    repetitions: bool = flag(
        "--repetitions", "Count each file as one repetition: runs one after the other."
    )
    prices: tuple[Path, ...] = options.repeated(
        "--prices", options.PATH, "Price list of server types, stored with a folder of them."
    )
    value_unit: str | None = options.option(
        "--value-unit",
        click.Choice(("ns", "us", "ms", "s")),
        "Unit of the values of HdrHistogram logs, which do not state it.",
    )
    series: bool = flag(
        "--series", "Make each file a run of its own: one benchmark over time, for `history`."
    )
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    cls=_Command,
    prints={
        "": RESULT,
        "DIR": Document("market_import", ".features.market.import_records:MarketImport"),
    },
    is_work=True,
    requests=Excluded("stores a run"),
    examples=(
        "fio.json",
        "run-1.json run-2.json",
    ),
)
def import_(args: _ImportArguments) -> int:
    """Import results from other tools.

    FILE is a result file of one of the tools below, also compressed with gzip; its format is
    recognised by its content. Of several files, copies count once; files that state that they ran
    at the same time are summed, and others are repetitions. The imported run is stored, analysed
    and printed like a measured run; what the files do not contain, and records that cannot be
    used, are stated.

    A directory is a clone of SpareCores/sc-inspector-data: its server types are stored for
    `nephoscope market`. An import that was interrupted goes on from there.
    """
    from nephoscope.store import Store
    from nephoscope.store.imports.arrangement import Arrangement
    from nephoscope.store.imports.importing import import_files, import_series

    if any(path.is_dir() for path in args.files):
        return _import_types(args)
    if args.prices:
        raise UsageError(
            "--prices is stored with the server types of a directory.",
            "Name a clone of SpareCores/sc-inspector-data, or use `nephoscope market --prices`.",
        )

    if args.parallel + args.repetitions + args.series > 1:
        raise UsageError(
            "--parallel, --repetitions and --series exclude each other.",
            "Name the one that is true of the files.",
        )
    where = options.sets(args.where, "--where vendor=aws")
    if args.series:
        if args.as_json:
            raise UsageError(
                "--series stores several runs, which are no single JSON document.",
                "Leave out --json; `nephoscope runs --json` lists the runs.",
            )
        runs = import_series(
            args.files,
            Store(args.store),
            where,
            value_unit=args.value_unit or "",
            note=output.warn,
        )
        output.say(_series_text(runs))
        return 0
    arrangement = (
        Arrangement.PARALLEL
        if args.parallel
        else Arrangement.REPETITIONS
        if args.repetitions
        else None
    )
    run = import_files(
        args.files,
        Store(args.store),
        where,
        arrangement=arrangement,
        value_unit=args.value_unit or "",
        note=output.warn,
    )
    return measuring.present(run, as_json=args.as_json, text_of=metric_table.table)


def _import_types(args: _ImportArguments) -> int:
    from nephoscope.cli.kit.section_output import present
    from nephoscope.features.market.import_section import import_section
    from nephoscope.features.market.import_types import import_types
    from nephoscope.store import Store

    if len(args.files) > 1 or args.where or args.parallel or args.repetitions or args.series:
        raise UsageError(
            "A directory of server types is imported alone and as a whole.",
            "Omit the other files, --where, --parallel, --repetitions and --series.",
        )
    record = import_types(args.files[0], args.prices, Store(args.store).path, output.log)
    return present(record, import_section(record), as_json=args.as_json)


def _series_text(runs: Sequence[StoredRun]) -> str:
    """Returns how many runs there are, and the command that shows them over time."""
    first, last = runs[0].id, runs[-1].id
    stored = f"1 run: {first}." if len(runs) == 1 else f"{len(runs):,} runs: {first} to {last}."
    metrics = runs[-1].metrics_of_shape(Shape.SCALAR).values()
    headline = next(metric.id for metric in metrics if metric.headline)
    return f"{stored}\nOver time: `nephoscope history {headline}`"
