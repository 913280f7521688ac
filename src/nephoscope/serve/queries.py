"""Commands of the command line that requests may call: they read, and neither measure nor write.

A request names arguments and options as the command line does. Names of files are looked up in the
folder of `--data`, those of runs in the store; nothing of a request can become another option.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import cast

import click

from nephoscope.cli.kit import command, registered
from nephoscope.cli.kit.command import CommandRecord, Elsewhere, Excluded, Query
from nephoscope.cli.kit.named import Kind, Named
from nephoscope.core.errors import UnknownName, UsageError
from nephoscope.core.reading.sentences import choices

FILE_SETTINGS = ("lab", "lab.geo", "lab.geo.latency")
"""Settings of a plan that may name a file anywhere; requests override none of them."""

MAX_FILES = 1000
"""Files of the folder of `--data` that are listed."""

_NEVER = ("--store", "--json", "-o")
"""Options that requests never name: the server has one store, and writes no files."""

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@%-]{0,199}")
"""A name that is no path and no option."""


@cache
def records() -> Mapping[str, CommandRecord]:
    """Returns the records of all commands that print a document, by full name."""
    return command.records(registered.program())


def queries() -> dict[str, dict[str, Kind]]:
    """Returns the kind of every parameter of the commands that requests may call."""
    names = [name for name, record in records().items() if isinstance(record.requests, Query)]
    return {name: parameters_of(name) for name in names}


def documents_of(name: str) -> list[str]:
    """Returns the names of the documents that a query may answer with."""
    record = records()[name]
    fixed = query_of(name).fixed
    fixed_records = [record.prints[name] for name in fixed if name in record.prints]
    return list(dict.fromkeys(printed.name for printed in fixed_records or record.prints.values()))


def query_of(name: str) -> Query:
    """Returns what requests may ask of a command that they may call."""
    return cast(Query, records()[name].requests)


def elsewhere() -> dict[str, str]:
    """Returns the routes of the commands that have their own."""
    known = ((name, record.requests) for name, record in records().items())
    return {name: requests.route for name, requests in known if isinstance(requests, Elsewhere)}


def excluded() -> dict[str, str]:
    """Returns why requests cannot call the other commands."""
    known = ((name, record.requests) for name, record in records().items())
    return {name: requests.reason for name, requests in known if isinstance(requests, Excluded)}


def command_of(name: str) -> click.Command:
    """Returns the command of a name such as `network series`."""
    click_command: click.Command = registered.program()
    for word in name.split():
        click_command = cast(click.Group, click_command).commands[word]
    return click_command


def words_of(
    name: str, values: Sequence[tuple[str, str]], store: Path, data: Path | None
) -> list[str]:
    """Returns the command line of a request. values: name and value, as they came.

    Raises UnknownName for another command, UsageError for what the command does not take.
    """
    known = records().get(name)
    query = known.requests if known else None
    if not isinstance(query, Query):
        why = f"It {query.reason}." if isinstance(query, Excluded) else ""
        raise UnknownName(
            f"There is no query '{name[:80]}'. {why}".strip(), "See /api/v1/commands."
        )
    click_command = command_of(name)
    parameters = parameters_of(name)
    unknown = {key for key, _ in values} - parameters.keys()
    if unknown:
        raise UsageError(
            f"`{name}` has no parameter '{min(unknown)[:80]}' here.",
            choices("Parameters", parameters, "It takes no parameters."),
        )
    if set(query.needs) - {key for key, _ in values}:
        raise UsageError(f"`{name}` needs {' and '.join(query.needs)} here.")
    overridden = {text.partition("=")[0].strip() for key, text in values if key == "set"}
    if name == "run" and not overridden.isdisjoint(FILE_SETTINGS):
        raise UsageError(
            f"set: {', '.join(FILE_SETTINGS)} may name files and cannot be overridden here.",
            "Write them into the plan, or override the values inside.",
        )
    words = [*name.split(), *query.fixed]
    for key, value in values:
        words += _option(click_command, key, parameters[key], value, store, data)
    words += ["--json"]
    if any("--store" in parameter.opts for parameter in click_command.params):
        words += [f"--store={store}"]
    words += ["--"]  # what follows is no option, whatever it begins with
    for parameter in _arguments(click_command):
        key = str(parameter.name)
        texts = [value for name, value in values if name == key]
        words += [checked(key, text, parameters[key], store, data) for text in texts]
    return words


def parameters_of(name: str) -> dict[str, Kind]:
    """Returns the kind of every parameter of a query by its name, in the order of the help."""
    click_command, query = command_of(name), query_of(name)
    if not query.has_parameters:
        return {}
    kinds: dict[str, Kind] = {
        str(argument.name): _kind_of(argument) for argument in _arguments(click_command)
    }
    for key, option in _all_options(click_command).items():
        if not getattr(option, "is_local", False) and not {*_NEVER, *query.fixed} & {*option.opts}:
            kinds[key] = _kind_of(option)
    return kinds


def _kind_of(parameter: click.Parameter) -> Kind:
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return "flag"
    if isinstance(parameter.type, click.Path):
        return "file"
    return parameter.type.kind if isinstance(parameter.type, Named) else "text"


def _arguments(command: click.Command) -> Iterable[click.Argument]:
    return (param for param in command.params if isinstance(param, click.Argument))


def _all_options(command: click.Command) -> dict[str, click.Option]:
    """Returns the options by their long names, without dashes."""
    return {
        next(name for name in option.opts if name.startswith("--"))[2:]: option
        for option in command.params
        if isinstance(option, click.Option)
    }


def _option(
    command: click.Command, key: str, kind: Kind, value: str, store: Path, data: Path | None
) -> list[str]:
    if key not in _all_options(command):
        return []
    if kind == "flag":
        if value not in ("true", "false"):
            raise UsageError(f"{key}: '{value[:80]}' is no choice.", "Use true or false.")
        return [f"--{key}"] if value == "true" else []
    return [f"--{key}={checked(key, value, kind, store, data)}"]


def checked(key: str, text: str, kind: Kind, store: Path, data: Path | None) -> str:
    """Returns the value of a parameter, a path for a file. Raises UsageError or UnknownName."""
    if "\0" in text or len(text) > 4096:
        raise UsageError(f"{key}: the value is too long or holds a NUL byte.")
    if kind == "file":
        return str(file_of(text, data))
    if kind == "contract":
        return text if _PLAIN.fullmatch(text) and "." not in text else str(file_of(text, data))
    if kind == "source" and text.endswith(".csv"):
        return str(file_of(text, data))
    if kind in ("run", "source"):
        return run_of(text, store)
    return text


def run_of(text: str, store: Path) -> str:
    """Returns RUN or RUN:TARGET with the whole id of the run. UnknownName where there is none."""
    from nephoscope.store import Store

    run, colon, target = text.partition(":")
    return f"{Store(store).find(run).id}{colon}{target}"


def file_of(name: str, data: Path | None) -> Path:
    """Returns a file of the folder of `--data`. UnknownName for any that lies elsewhere."""
    if data is None:
        raise UnknownName(
            f"There is no file '{name[:80]}': this server has no folder of files.",
            "Start it with --data DIR.",
        )
    path = data / name
    # Also links are followed before the folders are compared. A name may be longer than any file's.
    with contextlib.suppress(OSError):
        if "\0" not in name and path.is_file() and path.resolve().is_relative_to(data.resolve()):
            return path.resolve()
    raise UnknownName(f"There is no file '{name[:80]}' in the folder of --data.")


def files_of(data: Path | None) -> list[str]:
    """Returns the names of files of the folder of `--data`, without hidden ones."""
    if data is None:
        return []
    names = (
        str(path.relative_to(data))
        for path in sorted(data.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(data).parts)
    )
    return list(islice(names, MAX_FILES))
