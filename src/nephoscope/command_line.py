"""The command line: the commands of the features, exit codes, errors.

A command is imported when it is called, and what is heavy when it runs. Data goes to
stdout, progress and errors to stderr. Exit codes: 0 success, 1 an objective was missed, 2 usage
error, 3 a run failed, 4 a requirement is missing, 130 interrupted.
"""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, cast

import click

from nephoscope.app import FEATURES
from nephoscope.cli.kit import abandoned, habits
from nephoscope.cli.kit.command import WithExamples
from nephoscope.core import blas_threads
from nephoscope.core.errors import NephoscopeError, UsageError
from nephoscope.results.feature import Feature, Topic, command_name, features, load

Program = TypeVar("Program", bound=Callable[..., Any])

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 80}


def _references(entries: Iterable[Feature]) -> dict[str, str]:
    return {command_name(command): command for entry in entries for command in entry.commands}


class OnDemand(Mapping[str, click.Command]):
    """The commands by name, each imported when it is looked up."""

    own: ClassVar = _references(FEATURES)

    def __getitem__(self, name: str) -> click.Command:
        # Other packages are searched where the name is none of this one's.
        loaded = cast(click.Command, load(self.own.get(name) or self.references[name]))
        for entry in FEATURES if name in self.own else features():
            for reference in entry.subcommands.get(name, ()):
                cast(click.Group, loaded).add_command(load(reference))
        return loaded

    def __iter__(self) -> Iterator[str]:
        return iter(self.references)

    def __len__(self) -> int:
        return len(self.references)

    @property
    def references(self) -> dict[str, str]:
        """Returns name -> `module:name` of every command."""
        return _references(features())


class App(WithExamples, click.Group):
    """The program, whose help lists the commands by topic without importing them."""

    examples = ("survey", "bench --command 'md5sum data.bin' --command 'sha1sum data.bin'")

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names in order of the features."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the names of the commands by topic."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(topic.value, " ".join(names)) for topic, names in by_topic().items()]
            )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command that is called; one that moved is found by its former name."""
        for count in (2, 1):
            former = " ".join(args[:count])
            if moved := habits.MOVED.get(former):
                from nephoscope.cli.kit import output

                output.warn(f"`nephoscope {former}` is now `nephoscope {moved}`.")
                return super().resolve_command(ctx, [*moved.split(), *args[count:]])
        if (hint := habits.COMMANDS.get(args[0].lower())) and args[0] not in self.commands:
            raise UsageError(f"There is no command '{args[0]}'.", hint)
        return super().resolve_command(ctx, args)


def by_topic() -> dict[Topic, list[str]]:
    """Returns the names of the commands by topic, both in the order of the help."""
    return {
        topic: [
            command_name(command)
            for entry in features()
            if entry.topic is topic
            for command in entry.commands
        ]
        for topic in Topic
    }


def _print_versions(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    """Prints the versions of the program, its probe, their protocol and Python."""
    if not wanted:
        return
    import platform

    from nephoscope import __version__, catalog

    contracts = catalog.load()
    click.echo(
        f"nephoscope {__version__} (probe {contracts.probe}, protocol {contracts.protocol}, "
        f"Python {platform.python_version()})"
    )
    context.exit()


def _print_licences(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    """Prints the licences of third-party software."""
    if wanted:
        from nephoscope.core import programs

        click.echo(programs.notices())
        context.exit()


def _immediate(name: str, callback: Any, doc: str) -> Callable[[Program], Program]:
    """Returns the decorator of an option that prints something instead of a command."""
    return click.option(
        name, is_flag=True, expose_value=False, is_eager=True, callback=callback, help=doc
    )


@click.group(
    cls=App,
    commands=OnDemand(),
    context_settings=SETTINGS,
    invoke_without_command=True,
    help="""Measure cloud machines; every result has a confidence interval.
    `nephoscope help TOPIC` (or `all`) describes commands, `nephoscope COMMAND -h` one.""",
)
@_immediate("--version", _print_versions, "Print the versions of the program and its probe.")
@_immediate("--licences", _print_licences, "Print the licences of third-party software.")
@click.pass_context
def program(context: click.Context) -> int:
    """Prints the help where no command is given."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        return 2
    context.obj = abandoned.remove_abandoned()
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

    # Records form no cycles; looking for some takes a seventh of the time of an analysis, and as
    # much once more when the interpreter ends.
    gc.set_threshold(200_000, 20, 20)
    atexit.register(gc.freeze)
    blas_threads.use_one()
    try:
        output.forget_failures()
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
