"""`nephoscope import FILE`: another tool's results into the store, then our analysis of them."""

from __future__ import annotations

from pathlib import Path

import click

from nephoscope.cli.kit import measuring, metric_table, options, output
from nephoscope.core.errors import UsageError


class _Command(click.Command):
    """The command, whose help lists the formats of the registry."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from nephoscope.store.imports import formats

        super().format_help_text(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(f"Tools: {', '.join(formats.tools())}.")


@click.command("import", cls=_Command)
@click.argument("files", type=options.PATH, nargs=-1, required=True, metavar="FILE...")
@options.repeated(
    "--where", "KEY=VALUE", "Import only figures with this test, metric or factor, e.g. vendor=aws."
)
@click.option(
    "--parallel",
    is_flag=True,
    help="Sum the files: parts of one run that ran at the same time, such as load generators.",
)
@click.option(
    "--repetitions",
    is_flag=True,
    help="Count each file as one repetition: runs one after the other.",
)
@options.STORE
@options.JSON
def import_(
    files: tuple[Path, ...],
    where: tuple[str, ...],
    parallel: bool,
    repetitions: bool,
    store: Path | None,
    as_json: bool,
) -> int:
    """Import results from other tools.

    FILE is a result file of one of the tools below, also compressed with gzip; its format is
    recognised by its content. Of several files, copies count once; files that state that they ran
    at the same time are summed, and others are repetitions. The imported run is stored, analysed
    and printed like a measured run; what the files do not contain, and records that cannot be
    used, are stated.
    """
    from nephoscope.store import Store
    from nephoscope.store.imports import Arrangement, import_files

    if parallel and repetitions:
        raise UsageError(
            "--parallel and --repetitions exclude each other.",
            "Name the one that is true of the files.",
        )
    arrangement = (
        Arrangement.PARALLEL if parallel else Arrangement.REPETITIONS if repetitions else None
    )
    run = import_files(
        files,
        Store(store),
        options.sets(where, "--where vendor=aws"),
        arrangement=arrangement,
        note=output.warn,
    )
    return measuring.present(run, as_json=as_json, text_of=metric_table.table)
