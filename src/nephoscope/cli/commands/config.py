"""`nephoscope config`: the values of the configuration, and where each comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nephoscope.cli.kit import configuration, options, output
from nephoscope.cli.kit.command import Document, Query, command
from nephoscope.cli.kit.configuration import Value


@dataclass(frozen=True, slots=True)
class Configuration:
    """The configuration. file: its path, whether or not it exists."""

    file: str | None
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class _ConfigArguments:
    as_json: bool = options.JSON


@command(
    prints=Document("configuration", Configuration),
    requests=Query(),
    examples=(
        "",
        "--json",
    ),
)
def config(args: _ConfigArguments) -> None:
    """Print the configuration and the source of each value.

    An option takes precedence over the environment, the environment over the file, and the file
    over the default. docs/reference/README.md describes the file.
    """
    path = configuration.file_path()
    values = configuration.values()
    if args.as_json:
        output.document({"file": None if path is None else str(path), "values": values})
        return
    state = "read" if configuration.is_there(path) else "not found"
    output.say(f"File: {path or 'none'} ({state})\n")
    rows = [(value.key, _in_words(value.value), value.source) for value in values]
    output.say(output.table(("KEY", "VALUE", "SOURCE"), rows))


def _in_words(value: Any) -> str:
    from nephoscope.store import default_path

    if value is None:  # the store: no other key lacks a value
        return str(default_path())
    return ", ".join(value) if isinstance(value, list | tuple) else str(value)
