"""The command line: what may be typed. Each verb's work is in commands/<verb>.py.

Nothing heavy is imported up here: `--help` has to answer at once. Data goes to stdout, progress
and errors to stderr. Exit codes: 0 done, 1 an objective failed, 2 usage, 3 a run failed, 4 the
environment lacks something, 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from nephoscope import __version__
from nephoscope.errors import NephoscopeError

FORMATS = ("csv", "json", "parquet")

_Function = TypeVar("_Function", bound=Callable[..., Any])
_PATH = click.Path(path_type=Path)
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 80}


def _shared(*words: str, **kinds: Any) -> Callable[[_Function], _Function]:
    """An option that several verbs have, so that it means the same in each."""
    return click.option(*words, **kinds)


_json = _shared("--json", "as_json", is_flag=True, help="Print JSON on stdout, nothing else.")
_store = _shared(
    "--store", type=_PATH, metavar="DIR", help="Where runs are kept (else NEPHOSCOPE_STORE)."
)
_seed = _shared(
    "--seed", type=click.IntRange(0, 2**63 - 1), metavar="N", help="Seed of the order of trials."
)
_budget = _shared("--budget", metavar="TIME", help="Time to spend at most: 60s, 10min.")
_fresh = _shared("--fresh", is_flag=True, help="Begin anew; leave an unfinished run as it is.")
_sets = _shared("--set", "sets", multiple=True, metavar="NAME=VALUE", help="Set it; repeatable.")


class _InOrder(click.Group):
    """Lists the verbs in the order in which a person meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """As they stand in this file."""
        return list(self.commands)


@click.group(
    cls=_InOrder,
    context_settings=_SETTINGS,
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
@_budget
@_seed
@_store
@_json
@_fresh
def survey(**given: Any) -> int:
    """What did I really get? Measures this machine, writes a report.

    T is local, ssh:[user@]host[:port] or lab:LAB/HOST.
    """
    from nephoscope.commands import survey as command

    return command.run(**given)


@app.command()
@click.argument("plan", type=_PATH)
@_sets
@_seed
@_budget
@_store
@_json
@_fresh
@click.option("--dry-run", is_flag=True, help="Only show order, time, cost and what is touched.")
def run(**given: Any) -> int:
    """Run the plan in a YAML file, or go on where it stopped."""
    from nephoscope.commands import run as command

    return command.run(**given)


@app.command()
@click.argument("benchmark", metavar="ID")
@_sets
@click.option("--target", default="local", metavar="T", show_default=True, help="Where to run it.")
@click.option(
    "--repetitions", type=click.IntRange(1, 100_000), metavar="N", help="Exactly so many trials."
)
@_budget
@_seed
@_store
@_json
def bench(**given: Any) -> int:
    """Run one benchmark now; prints every metric, with interval.

    T is local, ssh:[user@]host[:port] or lab:LAB/HOST.
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
@_budget
@_seed
@_store
@_json
@_fresh
def isolate(**given: Any) -> int:
    """What does a neighbour take away, and does it come back?

    VICTIM is `all`, a benchmark, or a resource: cpu, memory, cache, disk_read, disk_write, fsync,
    net_send, net_receive, packets, switches. So is RESOURCE, which may be `idle` too. ROLE is
    victim, aggressor or server; T is local, ssh:[user@]host[:port] or lab:LAB/HOST.
    """
    from nephoscope.commands import isolate as command

    return command.run(**given)


@app.command()
@click.option(
    "--target", "targets", multiple=True, metavar="T", help="Instead of here; repeatable."
)
@_seed
@_store
@_json
def scheduler(**given: Any) -> int:
    """What takes the CPU away, and by which rule? Looks for 9 s.

    T is local, ssh:[user@]host[:port] or lab:LAB/HOST.
    """
    from nephoscope.commands import scheduler as command

    return command.run(**given)


@app.command()
@_store
@_json
def runs(**given: Any) -> int:
    """The runs of the store, newest first."""
    from nephoscope.commands import runs as command

    return command.run(**given)


@app.command()
@click.argument("name", metavar="[RUN]", default="latest")
@click.option("--journal", is_flag=True, help="What happened when, instead.")
@_store
@_json
def show(**given: Any) -> int:
    """Analyse a run again, rewrite its report, print it.

    RUN is an id, the beginning of one, or `latest`.
    """
    from nephoscope.commands import show as command

    return command.run(**given)


@app.command()
@click.argument("name", metavar="[RUN]", default="latest")
@_store
@_json
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
@click.option("-o", "--output", "to", type=_PATH, metavar="FILE", help="Instead of stdout.")
@_store
def export(**given: Any) -> int:
    """Write the samples of a run as CSV, JSON or Parquet.

    RUN is an id, the beginning of one, or `latest`.
    """
    from nephoscope.commands import export as command

    return command.run(**given)


@app.command("import")
@click.argument("file", type=_PATH)
@_store
@_json
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
@_store
@_json
def compare(**given: Any) -> int:
    """Is B better than A? Of runs, targets or files of numbers.

    A and B are two runs (id, its beginning, latest), two targets of a run as RUN:TARGET, or two
    files with one number a line. A alone: the two targets of that run, paired by round.
    """
    from nephoscope.commands import compare as command

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
    "--import", "files", multiple=True, type=_PATH, metavar="FILE.csv", help="Counts; repeatable."
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
@click.option("-o", "--output", "to", type=_PATH, metavar="FILE", help="As .html, .md or .json.")
@_budget
@_seed
@_store
@_json
def census(**given: Any) -> int:
    """Which CPU does one get, and how fast is each?

    Of all runs of the store, unless told otherwise. T is local, ssh:[user@]host[:port] or
    lab:LAB/HOST; the columns of FILE.csv are in docs/guides/census.md.
    """
    from nephoscope.commands import census as command

    return command.run(**given)


@app.command("list")
@click.argument("benchmark", required=False)
@_json
def list_(**given: Any) -> int:
    """What can be measured: benchmarks, parameters and metrics.

    With BENCHMARK, its whole page.
    """
    from nephoscope.commands import list_ as command

    return command.run(**given)


@app.command()
@_store
@_json
def doctor(**given: Any) -> int:
    """What works here, what lacks, and how to install it."""
    from nephoscope.commands import doctor as command

    return command.run(**given)


@app.command()
@_json
def version(**given: Any) -> int:
    """Print the versions of the program and of its probe."""
    from nephoscope.commands import version as command

    return command.run(**given)


@app.group(cls=_InOrder)
def study() -> None:
    """The five reference studies: theirs, and ours beside it."""


@study.command("list")
@_store
@_json
def study_list(**given: Any) -> int:
    """The studies: parts, published numbers, last run here."""
    from nephoscope.commands import study as command

    return command.list_(**given)


@study.command("show")
@click.argument("name")
@_store
@_json
def study_show(**given: Any) -> int:
    """Print what NAME published; ours beside it if it was run."""
    from nephoscope.commands import study as command

    return command.show(**given)


@study.command("run")
@click.argument("name")
@click.option(
    "--scale",
    type=click.Choice(["small", "paper"]),
    default="small",
    show_default=True,
    help="Minutes on two CPUs, or as the study did it.",
)
@click.option("--part", "parts", multiple=True, metavar="PART", help="Only this one; repeatable.")
@_seed
@_store
@_json
@_fresh
def study_run(**given: Any) -> int:
    """Measure the parts of NAME that are here; compare."""
    from nephoscope.commands import study as command

    return command.run(**given)


@app.group(cls=_InOrder)
def lab() -> None:
    """A cloud in one Linux box: hosts, links, delays."""


@lab.command("up")
@click.argument("topology", type=_PATH)
@_json
def lab_up(**given: Any) -> int:
    """Bring up the lab of a topology file; all of it or nothing."""
    from nephoscope.commands import lab as command

    return command.up(**given)


@lab.command("down")
@click.argument("name", required=False, metavar="[NAME|TOPOLOGY.yaml]")
@click.option("--all", "everything", is_flag=True, help="Every lab of this machine.")
@_json
def lab_down(**given: Any) -> int:
    """Remove everything of a lab, also after a kill."""
    from nephoscope.commands import lab as command

    return command.down(**given)


@lab.command("list")
@_json
def lab_list(**given: Any) -> int:
    """The labs here: state, hosts, what their links are made of."""
    from nephoscope.commands import lab as command

    return command.list_(**given)


@lab.command("exec", context_settings={"ignore_unknown_options": True})
@click.argument("place", metavar="LAB/HOST")
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="-- PROGRAM…")
def lab_exec(**given: Any) -> int:
    """Run a program inside a host; the exit code is its own."""
    from nephoscope.commands import lab as command

    return command.exec_(**given)


@lab.command("check")
@click.argument("topology", type=_PATH, required=False)
@click.option("--only", multiple=True, metavar="ID", help="Checks that begin so; repeatable.")
@_json
def lab_check(**given: Any) -> int:
    """Hold every mechanism to its truth: set, measured, verdict.

    With TOPOLOGY, whether that file can be built here, and the mechanisms and settings that it
    uses.
    """
    from nephoscope.commands import lab as command

    return command.check(**given)


def reference_markdown() -> str:
    """The reference page's body: a heading for each verb, and what its --help prints."""
    settings: dict[str, Any] = {**_SETTINGS, "terminal_width": 80}
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
