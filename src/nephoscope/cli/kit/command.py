"""What a command is: its arguments as one record, the documents that it prints, and its requests.

Help, schemas, routes, completion and the manual page follow from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import Any

import click

from nephoscope.cli.kit.options import InOrder, OptionGroup, Parameter
from nephoscope.core.reading.unbroken import shell_lines
from nephoscope.results.feature import command_name, load


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON document that commands print with `--json`.

    record: its dataclass, or `module:name` of it or of a function that returns it. title: of its
    own file, contracts/NAME.schema.json; others are in contracts/commands.schema.json.
    """

    name: str
    record: str | type[Any]
    title: str = ""

    def schema(self) -> dict[str, Any]:
        """Returns its JSON Schema."""
        from nephoscope.core.documents import schema_of

        record = load(self.record) if isinstance(self.record, str) else self.record
        return schema_of(record if isinstance(record, type) else record(), self.title or self.name)


@dataclass(frozen=True, slots=True)
class Query:
    """Requests may call the command: it reads, and neither measures nor writes.

    fixed: words that are always there. needs: options that a request has to name. has_parameters:
    whether it may name any.
    """

    fixed: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    has_parameters: bool = True


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The document has a route of its own."""

    route: str


@dataclass(frozen=True, slots=True)
class Excluded:
    """Requests cannot call the command, and why: '`NAME` measures'."""

    reason: str


Requests = Query | Elsewhere | Excluded
Prints = Document | Mapping[str, Document]

MEASURES = Excluded("measures; its stored runs have the document `result`")


@dataclass(frozen=True, slots=True)
class CommandRecord:
    """What a command prints, by the option or argument that selects it (empty: without), and what
    requests may do with it; None for a command without `--json`."""

    prints: Mapping[str, Document] = field(default_factory=dict)
    requests: Requests | None = None


class WithExamples(click.Command):
    """A command whose help ends with examples.

    examples: command lines, of which the help begins each with the command's own name.
    """

    examples: tuple[str, ...] = ()

    def lines(self, path: str) -> list[str]:
        """Returns the examples as one types them. path: full name of the command."""
        return [f"{path} {words}".rstrip() for words in self.examples]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the examples, of which no line is broken."""
        if lines := self.lines(ctx.command_path):
            with formatter.section("Examples"):
                width = (ctx.max_content_width or 80) - 3
                for line in lines:
                    parts = shell_lines(line, width)
                    formatter.write("".join(f"  {part}\n" for part in parts))


class Command(WithExamples):
    """A command with its record."""

    record = CommandRecord()


class CommandGroup(WithExamples, InOrder):
    """Commands below one name, which may be a command itself."""

    record = CommandRecord()

    def lines(self, path: str) -> list[str]:
        """Returns its own examples, or the first of each of its first two commands."""
        if self.examples:
            return super().lines(path)
        first = list(self.commands.items())[:2]
        return [
            inner.lines(f"{path} {name}")[0]
            for name, inner in first
            if isinstance(inner, WithExamples) and inner.examples
        ]


def command(
    parent: click.Group | None = None,
    *,
    prints: Prints | None = None,
    requests: Requests | None = None,
    name: str | None = None,
    examples: tuple[str, ...] = (),
    is_work: bool = False,
    cls: type[click.Command] = Command,
    **settings: Any,
) -> Callable[[Callable[..., Any]], Any]:
    """Makes a command of a function, whose docstring is the help.

    The function takes nothing, or one record: a dataclass whose fields are parameters (see
    options.py). parent: group that it belongs to. examples: command lines without the command's
    name. is_work: whether it reads or computes for long though requests cannot call it, so that
    a terminal shows how far it is. settings: of click.
    """

    def made(function: Callable[..., Any]) -> click.Command:
        record = _record_of(function)
        shows_work = is_work or isinstance(requests, Query)

        @wraps(function)
        def run_command(**values: Any) -> Any:
            arguments = [] if record is None else [filled(record, values)]
            if not shows_work:
                return function(*arguments)
            from nephoscope.cli.kit import work_line

            with work_line.show_work():
                return function(*arguments)

        run_command.shows_work = shows_work  # type: ignore[attr-defined]
        added = cls(
            name or command_name(function.__name__),
            callback=run_command,
            params=[] if record is None else list(parameters(record)),
            help=function.__doc__,
            **settings,
        )
        own = prints if isinstance(prints, Mapping) else {"": prints} if prints else {}
        added.record = CommandRecord(own, requests)  # type: ignore[attr-defined]
        added.examples = examples  # type: ignore[attr-defined]
        if parent is not None:
            parent.add_command(added)
        return added

    return made


def group(**settings: Any) -> Callable[[Callable[..., Any]], Any]:
    """Makes a group of a function as `command` does; it lists its commands in their order."""
    return command(cls=CommandGroup, **settings)


def _record_of(function: Callable[..., Any]) -> type[Any] | None:
    """Returns the type of the only argument of a function; None for a function without."""
    names = [text for name, text in function.__annotations__.items() if name != "return"]
    return function.__globals__[names[0]] if names else None


def parameters(record: type[Any]) -> Iterator[click.Parameter]:
    """Yields the parameters that a record of arguments declares, in the order of its fields."""
    for declared in fields(record):
        if isinstance(declared.default, OptionGroup):
            yield from parameters(declared.default.record)
        else:
            assert isinstance(declared.default, Parameter), f"{record.__name__}.{declared.name}"
            yield declared.default.made(declared.name)


def filled(record: type[Any], values: Mapping[str, Any]) -> Any:
    """Returns the record with values by the names of its parameters."""
    return record(
        **{
            declared.name: filled(declared.default.record, values)
            if isinstance(declared.default, OptionGroup)
            else values[declared.name]
            for declared in fields(record)
        }
    )


def walk(program: click.Group) -> Iterator[tuple[str, click.Command]]:
    """Yields every command below a program with its full name, groups before what they have."""
    for name, subcommand in program.commands.items():
        yield name, subcommand
        if isinstance(subcommand, click.Group):
            yield from ((f"{name} {below}", inner) for below, inner in walk(subcommand))


def records(program: click.Group) -> dict[str, CommandRecord]:
    """Returns the records of all commands that print a document, by full name."""
    records_by_name = {
        name: getattr(subcommand, "record", CommandRecord()) for name, subcommand in walk(program)
    }
    return {name: record for name, record in records_by_name.items() if record.prints}
