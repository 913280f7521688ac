"""Defines the command line. The work of each command is in commands/ or in its capability's folder.

Heavy modules are imported by the command that needs them, so that `--help` stays fast. Data goes to
stdout, progress and errors to stderr. Exit codes: 0 success, 1 an objective was missed, 2 usage
error, 3 a run failed, 4 a requirement is missing, 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from nephoscope import __version__
from nephoscope.capabilities.table import TABLE, load
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
    TARGETS,
    InOrder,
)
from nephoscope.errors import NephoscopeError


@click.group(
    cls=InOrder,
    context_settings=SETTINGS,
    invoke_without_command=True,
    help="Measure cloud machines; every result has a confidence interval.",
)
@click.version_option(__version__, message="%(prog)s %(version)s", help="Print the version.")
@click.pass_context
def app(context: click.Context) -> int:
    """Prints the help where no command is given."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        return 2
    return 0


@app.command()
@click.option("--quick", is_flag=True, help="Run a reduced survey that takes less than one minute.")
@click.option(
    "--full", is_flag=True, help="Run all benchmarks at full resolution (about 20 minutes)."
)
@TARGETS
@BUDGET
@SEED
@STORE
@JSON
@FRESH
def survey(**options: Any) -> int:
    """Measure CPU, memory, disk and network of a machine.

    Writes a report as HTML, Markdown and JSON. TARGET is local, ssh:[user@]host[:port] or
    lab:LAB/HOST.
    """
    from nephoscope.commands import survey as command

    return command.run(**options)


@app.command()
@click.argument("plan", type=PATH)
@SETS
@SEED
@BUDGET
@STORE
@JSON
@FRESH
@click.option(
    "--dry-run", is_flag=True, help="Print schedule, time, cost and side effects; run nothing."
)
def run(**options: Any) -> int:
    """Run an experiment plan, or resume its unfinished run.

    PLAN is a YAML file; docs/reference/plan.md lists its keys.
    """
    from nephoscope.commands import run as command

    return command.run(**options)


@app.command()
@click.argument("benchmark", metavar="ID")
@SETS
@click.option(
    "--target", default="local", metavar="TARGET", show_default=True, help="Host to measure."
)
@click.option(
    "--repetitions", type=click.IntRange(1, 100_000), metavar="N", help="Number of trials."
)
@BUDGET
@SEED
@STORE
@JSON
def bench(**options: Any) -> int:
    """Run one benchmark and print all of its metrics.

    ID is the name of a benchmark; `nephoscope list` prints them. TARGET is local,
    ssh:[user@]host[:port], lab:LAB/HOST or sim[:[VM@]SCENARIO].
    """
    from nephoscope.commands import bench as command

    return command.run(**options)


@app.command()
@click.argument("victims", nargs=-1, metavar="VICTIM…")
@click.option(
    "--aggressor",
    "aggressors",
    multiple=True,
    metavar="RESOURCE",
    help="Resource for the aggressor to load [default: all]; may be repeated.",
)
@click.option(
    "--intensity", metavar="LIST", help="Load levels as fractions of full load, e.g. 0.25,0.5,1."
)
@click.option(
    "--neighbours",
    type=click.IntRange(1),
    default=1,
    metavar="K",
    show_default=True,
    help="Run with 1 to K concurrent aggressors.",
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="ROLE=TARGET",
    help="Host for a role [default: hosts of a new lab]; may be repeated.",
)
@click.option(
    "--placement",
    type=click.Choice(["own", "shared", "capped"]),
    default="own",
    show_default=True,
    help="CPU placement: one CPU per host, one shared CPU, or one each with a quota.",
)
@click.option(
    "--a-a", is_flag=True, help="Use idle aggressors only, to measure the false-positive rate."
)
@click.option("--quick", is_flag=True, help="Measure at full load only, in six rounds.")
@click.option("--dry-run", is_flag=True, help="Print schedule, time and side effects; run nothing.")
@BUDGET
@SEED
@STORE
@JSON
@FRESH
def isolate(**options: Any) -> int:
    """Measure how much a neighbour on the same host slows you.

    VICTIM is `all`, a benchmark, or a resource: cpu, memory, cache, disk_read, disk_write, fsync,
    net_send, net_receive, packets, switches. RESOURCE takes the same names, and `idle`. ROLE is
    victim, aggressor or server. TARGET is local, ssh:[user@]host[:port] or lab:LAB/HOST.
    """
    from nephoscope.isolation import command

    return command.run(**options)


@app.command()
@TARGETS
@SEED
@STORE
@JSON
def scheduler(**options: Any) -> int:
    """Infer the hypervisor's CPU scheduling policy (takes 9 s).

    TARGET is local, ssh:[user@]host[:port], lab:LAB/HOST or sim[:[VM@]SCENARIO].
    """
    from nephoscope.scheduler import command

    return command.run(**options)


@app.command()
@STORE
@JSON
def runs(**options: Any) -> int:
    """List stored runs, newest first."""
    from nephoscope.commands import runs as command

    return command.run(**options)


@app.command()
@click.argument("name", metavar="[RUN]", default="latest")
@click.option("--journal", is_flag=True, help="Print the run's event log instead of its results.")
@STORE
@JSON
def show(**options: Any) -> int:
    """Analyse a stored run again and print its report.

    RUN is a run id, a unique prefix of one, or `latest`. Also rewrites the report's files.
    """
    from nephoscope.commands import show as command

    return command.run(**options)


@app.command()
@click.argument("name", metavar="[RUN]", default="latest")
@STORE
@JSON
def stop(**options: Any) -> int:
    """Stop a running measurement and keep its completed trials.

    RUN is a run id, a unique prefix of one, or `latest`.
    """
    from nephoscope.commands import stop as command

    return command.run(**options)


@app.command()
@click.argument("name", metavar="RUN")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(FORMATS),
    default="csv",
    show_default=True,
    help="Format of the output.",
)
@click.option(
    "-o", "--output", "to", type=PATH, metavar="FILE", help="File to write [default: stdout]."
)
@STORE
def export(**options: Any) -> int:
    """Export the samples of a run as CSV, JSON or Parquet.

    RUN is a run id, a unique prefix of one, or `latest`.
    """
    from nephoscope.commands import export as command

    return command.run(**options)


@app.command("import")
@click.argument("file", type=PATH)
@STORE
@JSON
def import_(**options: Any) -> int:
    """Import results from PerfKit Benchmarker.

    FILE is newline-delimited JSON (perfkitbenchmarker_results.json). The imported run is stored,
    analysed and printed like a measured run.
    """
    from nephoscope.commands import import_ as command

    return command.run(**options)


@app.command()
@click.argument("a")
@click.argument("b", required=False)
@click.option(
    "--paired", is_flag=True, help="Treat line i of file A and line i of file B as one pair."
)
@click.option(
    "--margin",
    default="3%",
    metavar="RATIO",
    show_default=True,
    help="Largest relative difference that counts as equivalent.",
)
@click.option(
    "--confidence",
    default="95%",
    metavar="RATIO",
    show_default=True,
    help="Confidence level of the intervals.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Metric to compare [default: all]; may be repeated.",
)
@click.option(
    "--better",
    type=click.Choice(["lower", "higher"]),
    default="lower",
    show_default=True,
    help="Whether lower or higher numbers in plain files are better.",
)
@STORE
@JSON
def compare(**options: Any) -> int:
    """Compare two runs, two targets of a run, or two files.

    A and B are two runs (run id, unique prefix, `latest`), two targets of one run (RUN:TARGET), or
    two text files with one number per line. With A alone, compares the two targets of that run,
    paired by round.
    """
    from nephoscope.comparison import command

    return command.run(**options)


@app.command()
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="TARGET",
    help="Host to measure now; may be repeated.",
)
@click.option(
    "--metadata",
    is_flag=True,
    help="Query the cloud's metadata service for instance type and zone.",
)
@click.option(
    "--run", "names", multiple=True, metavar="RUN", help="Stored run to include; may be repeated."
)
@click.option(
    "--plan", multiple=True, metavar="NAME", help="Include only runs of this plan; may be repeated."
)
@click.option(
    "--of-target",
    multiple=True,
    metavar="NAME",
    help="Include only targets of this name; may be repeated.",
)
@click.option("--since", metavar="DATE", help="Earliest day to include (UTC).")
@click.option("--until", metavar="DATE", help="Latest day to include (UTC).")
@click.option(
    "--import",
    "files",
    multiple=True,
    type=PATH,
    metavar="FILE.csv",
    help="CSV file of observed CPU models; may be repeated.",
)
@click.option("--study", metavar="NAME", help="Study whose published census to use.")
@click.option(
    "--at-least",
    multiple=True,
    type=click.FloatRange(0, min_open=True),
    metavar="X",
    help="Also print the probability of X times the slowest speed; may be repeated.",
)
@click.option(
    "--confidence",
    default="95%",
    metavar="RATIO",
    show_default=True,
    help="Confidence level of the intervals.",
)
@click.option(
    "-o", "--output", "to", type=PATH, metavar="FILE", help="Report to write: .html, .md or .json."
)
@BUDGET
@SEED
@STORE
@JSON
def census(**options: Any) -> int:
    """Count CPU models by instance type and compare their speed.

    Uses all stored runs by default. TARGET is local, ssh:[user@]host[:port] or lab:LAB/HOST;
    docs/how-to/census.md describes the columns of FILE.csv.
    """
    from nephoscope.census import command

    return command.run(**options)


@app.command("list")
@click.argument("benchmark", required=False)
@JSON
def list_(**options: Any) -> int:
    """List benchmarks, or describe one: parameters and metrics."""
    from nephoscope.commands import list_ as command

    return command.run(**options)


@app.command()
@STORE
@JSON
def doctor(**options: Any) -> int:
    """Check this host for missing tools and kernel features."""
    from nephoscope.commands import doctor as command

    return command.run(**options)


@app.command()
@JSON
def version(**options: Any) -> int:
    """Print the versions of the program and of its probe."""
    from nephoscope.commands import version as command

    return command.run(**options)


app.add_command(study)
app.add_command(lab)
app.add_command(simulate)
for capability in TABLE:
    for command in capability.commands:
        app.add_command(load(command))


def reference_markdown() -> str:
    """Returns the body of the reference page: a heading and the help of each command."""
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
    """Runs the command line and returns the exit code; never prints a traceback."""
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
        return output.complain("Interrupted; repeat the same command to resume.", 130)
    except BrokenPipeError:
        return output.reader_left()
    except Exception as error:  # a defect: one sentence, and the traceback in a file
        return output.complain_of_defect(error)
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    sys.exit(main())
