"""The command line: what may be typed. Each verb's work is in commands/<verb>.py.

Nothing heavy is imported up here: `--help` has to answer at once. Data goes to stdout, progress
and errors to stderr. Exit codes: 0 done, 1 an objective failed, 2 usage, 3 a run failed, 4 the
environment lacks something, 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from nephoscope.errors import NephoscopeError

# typer carries its own click and exports only some of its exceptions; this is their common root.
_ClickError: Any = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="nephoscope",
    help="Measures clouds the way their users feel them; every number with its interval.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, nothing else.")]
StoreDir = Annotated[
    Path | None,
    typer.Option("--store", metavar="DIR", help="Where runs are kept.", envvar="NEPHOSCOPE_STORE"),
]
Budget = Annotated[
    str | None, typer.Option(metavar="TIME", help="Time to spend at most: 60s, 10min.")
]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed of the order of trials.")]
Sets = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Set a value; repeatable.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Begin anew; leave an unfinished run as is.")]
RunName = Annotated[str, typer.Argument(metavar="RUN", help="Id of a run, its start, or 'latest'.")]


class Format(StrEnum):
    """File formats of `export`."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


class Direction(StrEnum):
    """Which direction of plain numbers is good news."""

    LOWER = "lower"
    HIGHER = "higher"


def _show_version(wanted: bool) -> None:
    if wanted:
        from nephoscope.commands import version

        raise typer.Exit(version.run())


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", help="Print versions.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    """Measures clouds the way their users feel them; every number with its interval."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


@app.command()
def survey(
    quick: Annotated[bool, typer.Option("--quick", help="At most a minute.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Everything, finely.")] = False,
    budget: Budget = None,
    seed: Seed = None,
    store: StoreDir = None,
    as_json: Json = False,
    fresh: Fresh = False,
) -> None:
    """What did I really get? Measures this machine and writes a report."""
    from nephoscope.commands import survey as command

    raise typer.Exit(
        command.run(
            quick=quick,
            full=full,
            budget=budget,
            seed=seed,
            store=store,
            as_json=as_json,
            fresh=fresh,
        )
    )


@app.command()
def run(
    plan: Annotated[Path, typer.Argument(help="Plan file (YAML).")],
    sets: Sets = None,
    seed: Seed = None,
    store: StoreDir = None,
    as_json: Json = False,
    fresh: Fresh = False,
) -> None:
    """Run a plan; a plan that was interrupted goes on where it stopped."""
    from nephoscope.commands import run as command

    raise typer.Exit(
        command.run(plan, sets=sets or [], seed=seed, store=store, as_json=as_json, fresh=fresh)
    )


@app.command()
def bench(
    benchmark: Annotated[str, typer.Argument(metavar="ID", help="A benchmark of `list`.")],
    sets: Sets = None,
    target: Annotated[str, typer.Option(metavar="T", help="Where to run it.")] = "local",
    repetitions: Annotated[
        int | None, typer.Option(min=1, help="How often at least (10 unless said).")
    ] = None,
    budget: Budget = None,
    seed: Seed = None,
    store: StoreDir = None,
    as_json: Json = False,
) -> None:
    """Run one benchmark now; prints every metric, with interval."""
    from nephoscope.commands import bench as command

    raise typer.Exit(
        command.run(
            benchmark,
            sets=sets or [],
            target=target,
            repetitions=repetitions,
            budget=budget,
            seed=seed,
            store=store,
            as_json=as_json,
        )
    )


@app.command()
def runs(store: StoreDir = None, as_json: Json = False) -> None:
    """The runs of the store, newest first."""
    from nephoscope.commands import runs as command

    raise typer.Exit(command.run(store=store, as_json=as_json))


@app.command()
def show(name: RunName = "latest", store: StoreDir = None, as_json: Json = False) -> None:
    """Analyse a run again, write its report again and print it."""
    from nephoscope.commands import show as command

    raise typer.Exit(command.run(name, store=store, as_json=as_json))


@app.command()
def export(
    name: RunName,
    file_format: Annotated[Format, typer.Option("--format", help="Of the file.")] = Format.CSV,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Default: stdout.")
    ] = None,
    store: StoreDir = None,
) -> None:
    """Write the samples of a run as CSV, JSON or Parquet."""
    from nephoscope.commands import export as command

    raise typer.Exit(command.run(name, file_format=file_format.value, output=output, store=store))


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="PerfKit Benchmarker's newline-delimited JSON.")],
    store: StoreDir = None,
    as_json: Json = False,
) -> None:
    """Take in the samples of PerfKit Benchmarker and analyse them."""
    from nephoscope.commands import import_ as command

    raise typer.Exit(command.run(file, store=store, as_json=as_json))


@app.command()
def compare(
    a: Annotated[str, typer.Argument(help="A run, RUN:TARGET, or a file of numbers.")],
    b: Annotated[str | None, typer.Argument(help="The same; judged against A.")] = None,
    paired: Annotated[bool, typer.Option("--paired", help="Line i of A belongs to B's.")] = False,
    margin: Annotated[
        str, typer.Option(metavar="RATIO", help="Differences below it do not matter.")
    ] = "3%",
    confidence: Annotated[str, typer.Option(metavar="RATIO", help="Of the intervals.")] = "95%",
    metric: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this one; repeatable.")
    ] = None,
    better: Annotated[
        Direction, typer.Option(help="Good direction of the numbers in plain files.")
    ] = Direction.LOWER,
    store: StoreDir = None,
    as_json: Json = False,
) -> None:
    """Is B better than A? Of runs, targets or files of numbers."""
    from nephoscope.commands import compare as command

    raise typer.Exit(
        command.run(
            a,
            b,
            paired=paired,
            margin=margin,
            confidence=confidence,
            metrics=metric or [],
            better=better.value,
            store=store,
            as_json=as_json,
        )
    )


@app.command("list")
def list_(
    benchmark: Annotated[
        str | None, typer.Argument(metavar="BENCHMARK", help="Show its page.")
    ] = None,
    as_json: Json = False,
) -> None:
    """What can be measured: benchmarks, their parameters and metrics."""
    from nephoscope.commands import list_ as command

    raise typer.Exit(command.run(benchmark, as_json=as_json))


@app.command()
def doctor(store: StoreDir = None, as_json: Json = False) -> None:
    """What works here, what lacks, and how to install it."""
    from nephoscope.commands import doctor as command

    raise typer.Exit(command.run(store=store, as_json=as_json))


@app.command()
def version(as_json: Json = False) -> None:
    """Print the versions of the program and of its probe."""
    from nephoscope.commands import version as command

    raise typer.Exit(command.run(as_json=as_json))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code; never shows a traceback by itself."""
    from nephoscope.commands import output

    output.prepare_streams()
    try:
        code = app(
            args=None if argv is None else list(argv), prog_name="nephoscope", standalone_mode=False
        )
        sys.stdout.flush()
    except _ClickError as error:
        return output.complain_of_usage(error)
    except NephoscopeError as error:
        return output.complain(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return output.complain("Interrupted; the same command resumes.", 130)
    except BrokenPipeError:
        return output.reader_left()
    except Exception as error:  # the last resort: a sentence and a file, never a traceback
        return output.complain_of_defect(error)
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    sys.exit(main())
