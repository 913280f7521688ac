"""Reads the configuration: option before environment before file before default.

The file is $NEPHOSCOPE_CONFIG, else nephoscope/config.toml in $XDG_CONFIG_HOME or ~/.config. Its
values become the defaults of options, so that every command checks them as it checks its options.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from nephoscope.cli.kit.configuration_keys import KEYS, checked
from nephoscope.core.errors import UsageError

FILE_VARIABLE = "NEPHOSCOPE_CONFIG"
PREFIX = "NEPHOSCOPE_"
"""With the key in capitals, the variable that replaces a key of the file."""

COMMANDS = {
    "confidence": ("compare", "census"),
    "margin": ("compare",),
    "targets": ("survey", "scheduler"),
}
"""Commands that a key concerns: elsewhere the option of that name means another thing. A key that
is missing here concerns all commands that have the option."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value and where it comes from: a variable, a place in the file, or the default."""

    key: str
    value: Any
    source: str


def file_path() -> Path | None:
    """Returns the path of the configuration file; None where the variable for it is empty."""
    named = os.environ.get(FILE_VARIABLE)
    if named is not None:
        return Path(named) if named else None
    base = os.environ.get("XDG_CONFIG_HOME")
    try:
        folder = Path(base) if base and Path(base).is_absolute() else Path.home() / ".config"
    except RuntimeError:  # there is no home directory
        return None
    return folder / "nephoscope" / "config.toml"


def is_there(path: Path | None) -> bool:
    """Returns whether this user can see such a file.

    HOME may be another user's after `su` or `sudo -E`; whoever cannot look into it has no
    configuration there.
    """
    return path is not None and os.path.exists(path)


def values() -> list[Value]:
    """Returns every key with its value and source. UsageError for what cannot be used."""
    path = file_path()
    text, content = _content(path)
    resolved = []
    for key in KEYS:
        variable = PREFIX + key.upper()
        if os.environ.get(variable):
            resolved.append(Value(key, _from_text(key, os.environ[variable]), variable))
        elif key == "colour" and os.environ.get("NO_COLOR"):
            resolved.append(Value(key, "never", "NO_COLOR"))
        elif key in content:
            resolved.append(Value(key, content[key], f"{path}:{_line(text, key)}"))
        else:
            resolved.append(Value(key, KEYS[key].default, "default"))
    unknown = [key for key in content if key not in KEYS]
    if unknown:
        from nephoscope.core.reading.sentences import did_you_mean

        raise UsageError(
            f"{path}:{_line(text, unknown[0])}: unknown key '{unknown[0]}'"
            f"{did_you_mean(unknown[0], KEYS)}.",
            f"Known: {', '.join(KEYS)}.",
        )
    return [
        option
        if option.source == "default"
        else Value(option.key, checked(option.key, option.value, option.source), option.source)
        for option in resolved
    ]


def defaults_of_options(app: click.Group) -> dict[str, Any]:
    """Returns the configured values as click's default map; sets NO_COLOR for `colour: never`.

    Empty, and without any import that takes time, where nothing is configured.
    """
    path = file_path()
    variables = [PREFIX + key.upper() for key in KEYS if key != "store"]
    has_file = is_there(path) or os.environ.get(FILE_VARIABLE)
    if not has_file and not any(os.environ.get(variable) for variable in variables):
        return {}
    configured = {value.key: value.value for value in values() if value.source != "default"}
    if configured.pop("colour", "auto") == "never":
        os.environ["NO_COLOR"] = "1"
    if os.environ.get(PREFIX + "STORE"):
        configured.pop("store", None)  # read where the store is opened
    return _below(app, configured)


def _below(group: click.Group, configured: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the defaults of the options below a group, by command."""
    defaults: dict[str, Any] = {}
    for name, command in group.commands.items():
        options = {parameter.name for parameter in command.params}
        own = {
            key: value
            for key, value in configured.items()
            if key in options and name in COMMANDS.get(key, (name,))
        }
        if isinstance(command, click.Group):
            own |= _below(command, configured)
        if own:
            defaults[name] = own
    return defaults


def _content(path: Path | None) -> tuple[str, Mapping[str, Any]]:
    if path is None or not (is_there(path) or os.environ.get(FILE_VARIABLE)):
        return "", {}
    import tomllib

    from nephoscope.core.reading import textfile

    text = textfile.read(path, "configuration", UsageError)
    try:
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f"{path}: this is no valid TOML: {str(error).rstrip('.')}.", "Correct that line."
        ) from None


def _from_text(key: str, text: str) -> Any:
    return [part.strip() for part in text.split(",")] if key == "targets" else text


def _line(text: str, key: str) -> int:
    """Returns the line of a key or of a table of that name; 1 where neither is found."""
    place = re.search(rf"""(?m)^\s*(\[+\s*)?["']?{re.escape(key)}["']?\s*[.=\]]""", text)
    return 1 if place is None else text.count("\n", 0, place.end()) + 1
