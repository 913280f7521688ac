"""Lists the commands, which are defined in commands/ and in the folders of capabilities.

A command is imported when it is called, and what is heavy when it runs. Data goes to
stdout, progress and errors to stderr. Exit codes: 0 success, 1 an objective was missed, 2 usage
error, 3 a run failed, 4 a requirement is missing, 130 interrupted.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast

import click

from nephoscope import __version__
from nephoscope.core.errors import NephoscopeError
from nephoscope.results.table import TABLE, Command, load

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 80}

COMMANDS: tuple[Command, ...] = (
    Command(
        "survey", "Measure CPU, memory, disk and network of a machine.", ".cli.commands.survey"
    ),
    Command("run", "Run an experiment plan, or resume its unfinished run.", ".cli.commands.run"),
    Command("bench", "Measure one benchmark, or compare command lines.", ".cli.commands.bench"),
    *(command for capability in TABLE for command in capability.commands),
    Command("sla", "Check service level agreements: verdict, credit, evidence."),
    Command("traffic", "Analyse bursts of traffic and the energy of a mobile radio."),
    Command("cost", "Compute prices, cost per unit of work and savings."),
    Command(
        "tariff",
        "Price transfers by throughput, beside a flat tariff.",
        ".features.pricing.command",
    ),
    Command(
        "utility",
        "Choose among offers by their utility, with uncertainty.",
        ".features.pricing.utility_command",
    ),
    Command("advise", "Classify an application; predict its performance by platform."),
    Command(
        "compare",
        "Compare two runs, two targets of a run, or two files.",
        ".features.comparison.command",
    ),
    Command("rank", "Rank alternatives by metric, overall and by application."),
    Command("history", "Print a metric over time: change points, forecasts."),
    Command("watch", "Repeat an experiment plan on a schedule."),
    Command("study", "Reproduce the five reference studies.", ".features.studies.command"),
    Command("runs", "List stored runs, newest first; label or remove them.", ".cli.commands.runs"),
    Command("show", "Analyse a stored run again and print its summary.", ".cli.commands.show"),
    Command(
        "stop", "Stop a running measurement and keep its completed trials.", ".cli.commands.stop"
    ),
    Command(
        "verify", "Check the files of stored runs against their digests.", ".cli.commands.verify"
    ),
    Command(
        "compact",
        "Merge the trials of old runs into histograms; remove old days.",
        ".features.compaction.command",
    ),
    Command(
        "export",
        "Export the samples of runs as CSV, JSON lines or Parquet.",
        ".cli.commands.export",
    ),
    Command("import", "Import results from other tools.", ".cli.commands.import_:import_"),
    Command("serve", "Serve stored runs and runs in progress as a page and an API."),
    Command(
        "list",
        "List benchmarks, or describe one: parameters and metrics.",
        ".cli.commands.list_:list_",
    ),
    Command(
        "doctor", "Check this host for missing tools and kernel features.", ".cli.commands.doctor"
    ),
    Command(
        "config", "Print the configuration and the source of each value.", ".cli.commands.config"
    ),
    Command(
        "schema", "Print a JSON Schema; without NAME, list the schemas.", ".cli.commands.schema"
    ),
    Command("completion", "Print the completion script of a shell.", ".cli.commands.completion"),
    Command(
        "version", "Print the versions of the program and of its probe.", ".cli.commands.version"
    ),
    Command("lab", "Emulate hosts and network links on this machine.", ".cli.commands.lab"),
)
"""All commands in the order of the help, which is printed without importing them:
`tests/cli/test_cli.py` holds each summary to the help of its command."""


class OnDemand(Mapping[str, click.Command]):
    """The commands by name, each imported when it is looked up."""

    references: ClassVar = {command.name: command.reference for command in COMMANDS}

    def __getitem__(self, name: str) -> click.Command:
        return cast(click.Command, load(self.references[name]))

    def __iter__(self) -> Iterator[str]:
        return iter(self.references)

    def __len__(self) -> int:
        return len(self.references)


class App(click.Group):
    """The program, whose help lists the commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names in order of the table."""
        return [command.name for command in COMMANDS]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(command.name, command.summary) for command in COMMANDS])


@click.group(
    cls=App,
    commands=OnDemand(),
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


def reference_markdown() -> str:
    """Returns the body of the reference page: a heading and the help of each command."""
    settings = {**SETTINGS, "terminal_width": 80}
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
    from nephoscope.cli.kit import configuration, output

    # Records form no cycles; looking for some takes a seventh of the time of an analysis.
    gc.set_threshold(50_000, 20, 20)
    output.prepare_streams()
    output.refuse_libraries_without_memory()
    if output.COMPLETION_VARIABLE in os.environ:
        from nephoscope.cli.commands import completion

        completion.attach(app)
    try:
        output.refuse_undecodable(sys.argv[1:] if argv is None else argv)
        code = app.main(
            None if argv is None else list(argv),
            prog_name="nephoscope",
            standalone_mode=False,
            default_map=configuration.defaults_of_options(app),
        )
        sys.stdout.flush()
    except click.ClickException as error:
        return output.complain_of_usage(error)
    except NephoscopeError as error:
        for sentence in error.sentences:
            output.complain(sentence, error.exit_code)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return output.complain("Interrupted; repeat the same command to resume.", 130)
    except BrokenPipeError:
        return output.reader_left()
    except Exception as error:  # a defect: one sentence, and the traceback in a file
        return output.complain_of_defect(error)
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    sys.exit(main())
