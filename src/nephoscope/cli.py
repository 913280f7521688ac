"""The command line: what may be typed. Each verb's work is in commands/<verb>.py.

Nothing heavy is imported up here: `--help` has to answer at once. Data goes to stdout, progress
and errors to stderr. Exit codes: 0 done, 1 an objective failed, 2 usage, 3 a run failed, 4 the
environment lacks something, 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from nephoscope import __version__
from nephoscope.cli_groups import lab, simulate, study
from nephoscope.cli_shared import (
    BUDGET,
    FORMATS,
    FRESH,
    JSON,
    PATH,
    SEED,
    SETS,
    SETTINGS,
    STORE,
    InOrder,
)
from nephoscope.errors import NephoscopeError


@click.group(
    cls=InOrder,
    context_settings=SETTINGS,
    invoke_without_command=True,
    help="Measures clouds the way their users feel them; every number with its interval.",
)
@click.version_option(__version__, message="%(prog)s %(version)s", help="Print the version.")
@click.pass_context
def app(context: click.Context) -> int:
    """The program without a verb shows what it can do."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        return 2
    return 0


@app.command()
@click.option("--quick", is_flag=True, help="At most a minute.")
@click.option("--full", is_flag=True, help="Everything, finely.")
@click.option(
    "--target", "targets", multiple=True, metavar="T", help="Instead of here; repeatable."
)
@BUDGET
@SEED
@STORE
@JSON
@FRESH
def survey(**given: Any) -> int:
    """What did I really get? Measures this machine, writes a report.

    T is local, ssh:[user@]host[:port] or lab:LAB/HOST.
    """
    from nephoscope.commands import survey as command

    return command.run(**given)


@app.command()
@click.argument("plan", type=PATH)
@SETS
@SEED
@BUDGET
@STORE
@JSON
@FRESH
@click.option("--dry-run", is_flag=True, help="Only show order, time, cost and what is touched.")
def run(**given: Any) -> int:
    """Run the plan in a YAML file, or go on where it stopped."""
    from nephoscope.commands import run as command

    return command.run(**given)


@app.command()
@click.argument("benchmark", metavar="ID")
@SETS
@click.option("--target", default="local", metavar="T", show_default=True, help="Where to run it.")
@click.option(
    "--repetitions", type=click.IntRange(1, 100_000), metavar="N", help="Exactly so many trials."
)
@BUDGET
@SEED
@STORE
@JSON
def bench(**given: Any) -> int:
    """Run one benchmark now; prints every metric, with interval.

    T is local, ssh:[user@]host[:port], lab:LAB/HOST or sim[:[VM@]SCENARIO].
    """
    from nephoscope.commands import bench as command

    return command.run(**given)


@app.command()
@click.argument("victims", nargs=-1, metavar="VICTIM…")
@click.option(
    "--aggressor",
    "aggressors",
    multiple=True,
    metavar="RESOURCE",
    help="Only this one; repeatable.",
)
@click.option("--intensity", metavar="LIST", help="Of full load: 0.25,0.5,0.75,1.")
@click.option(
    "--neighbours",
    type=click.IntRange(1),
    default=1,
    metavar="K",
    show_default=True,
    help="From one to K of them at once.",
)
@click.option(
    "--target", "targets", multiple=True, metavar="ROLE=T", help="Instead of a lab; repeatable."
)
@click.option(
    "--placement",
    type=click.Choice(["own", "shared", "capped"]),
    default="own",
    show_default=True,
    help="A CPU each, one for all, or own and a quota besides.",
)
@click.option("--a-a", is_flag=True, help="Neighbours that do nothing: the noise.")
@click.option("--quick", is_flag=True, help="Full load only, six rounds.")
@click.option("--dry-run", is_flag=True, help="Only show order, time and what is touched.")
@BUDGET
@SEED
@STORE
@JSON
@FRESH
def isolate(**given: Any) -> int:
    """What does a neighbour take away, and does it come back?

    VICTIM is `all`, a benchmark, or a resource: cpu, memory, cache, disk_read, disk_write, fsync,
    net_send, net_receive, packets, switches. So is RESOURCE, which may be `idle` too. ROLE is
    victim, aggressor or server; T is local, ssh:[user@]host[:port] or lab:LAB/HOST.
    """
    from nephoscope.isolation import command

    return command.run(**given)


@app.command()
@click.option(
    "--target", "targets", multiple=True, metavar="T", help="Instead of here; repeatable."
)
@SEED
@STORE
@JSON
def scheduler(**given: Any) -> int:
    """What takes the CPU away, and by which rule? Looks for 9 s.

    T is local, ssh:[user@]host[:port], lab:LAB/HOST or sim[:[VM@]SCENARIO].
    """
    from nephoscope.scheduler import command

    return command.run(**given)


@app.command()
@STORE
@JSON
def runs(**given: Any) -> int:
    """The runs of the store, newest first."""
    from nephoscope.commands import runs as command

    return command.run(**given)


@app.command()
@click.argument("name", metavar="[RUN]", default="latest")
@click.option("--journal", is_flag=True, help="What happened when, instead.")
@STORE
@JSON
def show(**given: Any) -> int:
    """Analyse a run again, rewrite its report, print it.

    RUN is an id, the beginning of one, or `latest`.
    """
    from nephoscope.commands import show as command

    return command.run(**given)


@app.command()
@click.argument("name", metavar="[RUN]", default="latest")
@STORE
@JSON
def stop(**given: Any) -> int:
    """End a run that another process measures; keep its trials.

    RUN is an id, the beginning of one, or `latest`.
    """
    from nephoscope.commands import stop as command

    return command.run(**given)


@app.command()
@click.argument("name", metavar="RUN")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(FORMATS),
    default="csv",
    show_default=True,
    help="Of the file.",
)
@click.option("-o", "--output", "to", type=PATH, metavar="FILE", help="Instead of stdout.")
@STORE
def export(**given: Any) -> int:
    """Write the samples of a run as CSV, JSON or Parquet.

    RUN is an id, the beginning of one, or `latest`.
    """
    from nephoscope.commands import export as command

    return command.run(**given)


@app.command("import")
@click.argument("file", type=PATH)
@STORE
@JSON
def import_(**given: Any) -> int:
    """Take in samples of PerfKit Benchmarker; prints our analysis.

    FILE is its newline-delimited JSON (perfkitbenchmarker_results.json).
    """
    from nephoscope.commands import import_ as command

    return command.run(**given)


@app.command()
@click.argument("a")
@click.argument("b", required=False)
@click.option("--paired", is_flag=True, help="Line i of file A belongs to line i of file B.")
@click.option(
    "--margin",
    default="3%",
    metavar="RATIO",
    show_default=True,
    help="Smaller differences do not matter.",
)
@click.option(
    "--confidence", default="95%", metavar="RATIO", show_default=True, help="Of the intervals."
)
@click.option(
    "--metric", "metrics", multiple=True, metavar="NAME", help="Only this one; repeatable."
)
@click.option(
    "--better",
    type=click.Choice(["lower", "higher"]),
    default="lower",
    show_default=True,
    help="Which direction of the numbers in plain files is good.",
)
@STORE
@JSON
def compare(**given: Any) -> int:
    """Is B better than A? Of runs, targets or files of numbers.

    A and B are two runs (id, its beginning, latest), two targets of a run as RUN:TARGET, or two
    files with one number a line. A alone: the two targets of that run, paired by round.
    """
    from nephoscope.comparison import command

    return command.run(**given)


@app.command()
@click.option("--target", "targets", multiple=True, metavar="T", help="Measure it now; repeatable.")
@click.option("--metadata", is_flag=True, help="Ask the cloud for type and zone of the targets.")
@click.option(
    "--run", "names", multiple=True, metavar="RUN", help="Only this stored run; repeatable."
)
@click.option("--plan", multiple=True, metavar="NAME", help="Only runs of this plan; repeatable.")
@click.option(
    "--of-target", multiple=True, metavar="NAME", help="Only targets of this name; repeatable."
)
@click.option("--since", metavar="DATE", help="Only runs from that day on (UTC).")
@click.option("--until", metavar="DATE", help="Only runs up to that day, included.")
@click.option(
    "--import", "files", multiple=True, type=PATH, metavar="FILE.csv", help="Counts; repeatable."
)
@click.option("--study", metavar="NAME", help="The census that this study published.")
@click.option(
    "--at-least",
    multiple=True,
    type=click.FloatRange(0, min_open=True),
    metavar="X",
    help="Also the chance to get X times the slowest; repeatable.",
)
@click.option(
    "--confidence", default="95%", metavar="RATIO", show_default=True, help="Of the intervals."
)
@click.option("-o", "--output", "to", type=PATH, metavar="FILE", help="As .html, .md or .json.")
@BUDGET
@SEED
@STORE
@JSON
def census(**given: Any) -> int:
    """Which CPU does one get, and how fast is each?

    Of all runs of the store, unless told otherwise. T is local, ssh:[user@]host[:port] or
    lab:LAB/HOST; the columns of FILE.csv are in docs/guides/census.md.
    """
    from nephoscope.census import command

    return command.run(**given)


@app.command("list")
@click.argument("benchmark", required=False)
@JSON
def list_(**given: Any) -> int:
    """What can be measured: benchmarks, parameters and metrics.

    With BENCHMARK, its whole page.
    """
    from nephoscope.commands import list_ as command

    return command.run(**given)


@app.command()
@STORE
@JSON
def doctor(**given: Any) -> int:
    """What works here, what lacks, and how to install it."""
    from nephoscope.commands import doctor as command

    return command.run(**given)


@app.command()
@JSON
def version(**given: Any) -> int:
    """Print the versions of the program and of its probe."""
    from nephoscope.commands import version as command

    return command.run(**given)


app.add_command(study)
app.add_command(lab)
app.add_command(simulate)


def reference_markdown() -> str:
    """The reference page's body: a heading for each verb, and what its --help prints."""
    settings: dict[str, Any] = {**SETTINGS, "terminal_width": 80}
    top = click.Context(app, info_name="nephoscope", **settings)
    parts = [f"```text\n{app.get_help(top)}\n```\n"]
    for name, verb in app.commands.items():
        context = click.Context(verb, parent=top, info_name=name, **settings)
        parts.append(f"## nephoscope {name}\n\n```text\n{verb.get_help(context)}\n```\n")
        for word, inner in verb.commands.items() if isinstance(verb, click.Group) else ():
            below = click.Context(inner, parent=context, info_name=word, **settings)
            parts.append(f"### nephoscope {name} {word}\n\n```text\n{inner.get_help(below)}\n```\n")
    return "\n".join(parts)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code; never shows a traceback by itself."""
    from nephoscope.commands import output

    output.prepare_streams()
    try:
        code = app.main(
            None if argv is None else list(argv), prog_name="nephoscope", standalone_mode=False
        )
        sys.stdout.flush()
    except click.ClickException as error:
        return output.complain_of_usage(error)
    except NephoscopeError as error:
        return output.complain(str(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return output.complain("Interrupted; the same command resumes.", 130)
    except BrokenPipeError:
        return output.reader_left()
    except Exception as error:  # the last resort: a sentence and a file, never a traceback
        return output.complain_of_defect(error)
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    sys.exit(main())
