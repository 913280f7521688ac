"""The command line: the commands of the features, exit codes, errors.

A command is imported when it is called, and what is heavy when it runs. Data goes to
stdout, progress and errors to stderr. Exit codes: 0 success, 1 an objective was missed, 2 usage
error, 3 a run failed, 4 a requirement is missing, 130 interrupted.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast

import click

from nephoscope import __version__
from nephoscope.app import FEATURES
from nephoscope.cli.kit import abandoned
from nephoscope.cli.kit.summaries import summary_of
from nephoscope.core.errors import NephoscopeError
from nephoscope.results.feature import Feature, command_name, features, load

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 80}


def _references(entries: Iterable[Feature]) -> dict[str, str]:
    return {command_name(command): command for entry in entries for command in entry.commands}


class OnDemand(Mapping[str, click.Command]):
    """The commands by name, each imported when it is looked up."""

    own: ClassVar = _references(FEATURES)

    def __getitem__(self, name: str) -> click.Command:
        # Other packages are searched where the name is none of this one's.
        return cast(click.Command, load(self.own.get(name) or self.references[name]))

    def __iter__(self) -> Iterator[str]:
        return iter(self.references)

    def __len__(self) -> int:
        return len(self.references)

    @property
    def references(self) -> dict[str, str]:
        """Returns name -> `module:name` of every command."""
        return _references(features())


class App(click.Group):
    """The program, whose help lists the commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names in order of the features."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list of commands."""
        with formatter.section("Commands"):
            references = _references(features()).items()
            formatter.write_dl([(name, summary_of(reference)) for name, reference in references])


@click.group(
    cls=App,
    commands=OnDemand(),
    context_settings=SETTINGS,
    invoke_without_command=True,
    help="Measure cloud machines; every result has a confidence interval.",
)
@click.version_option(__version__, message="%(prog)s %(version)s", help="Print the version.")
@click.pass_context
def program(context: click.Context) -> int:
    """Prints the help where no command is given."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        return 2
    context.obj = abandoned.remove_abandoned_labs()
    return 0


def reference_markdown() -> str:
    """Returns the body of the reference page: a heading and the help of each command."""
    settings = {**SETTINGS, "terminal_width": 80}
    top = click.Context(program, info_name="nephoscope", **settings)
    parts = [f"```text\n{program.get_help(top)}\n```\n"]
    for name, verb in program.commands.items():
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
    try:
        output.prepare_streams()
        output.refuse_too_few_files()
        output.refuse_libraries_without_memory()
        output.refuse_undecodable(sys.argv[1:] if argv is None else argv)
        with output.unreadable_runs_named():
            code = program.main(
                None if argv is None else list(argv),
                prog_name="nephoscope",
                standalone_mode=False,
                default_map=configuration.defaults_of_options(program),
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
