"""The keys of the configuration file: defaults, meanings and checks, defined once.

No library of schemas: every command reads the file, and importing one takes longer than all else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.core.records import dataclass

Check = Callable[[Any], Any]
"""Returns the value as it is used. Raises UsageError with reason and next step."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the file. default: None for what the program chooses."""

    default: Any
    meaning: str
    check: Check


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError("it must be a text.", "Put it in quotes.")
    return value


def _store(value: Any) -> str:
    from nephoscope.store.objects.address import parse_address

    text = _text(value)
    return text if parse_address(text) is not None else _directory(text)


def _directory(value: Any) -> str:
    try:
        path = Path(_text(value)).expanduser()
    except RuntimeError:
        raise UsageError("there is no such home directory.", "Write the path from /.") from None
    if not path.is_absolute():
        raise UsageError("the path is not absolute.", "Write it from / or ~.")
    return str(path)


def _ratio(low: float, high: float) -> Check:
    def check(value: Any) -> str:
        text = _text(value)
        if not low < units.parse_ratio(text) < high:
            raise UsageError(
                f"'{text}' does not lie between {low:g} and {high:g}.", "Write a ratio such as 95%."
            )
        return text

    return check


def _targets(value: Any) -> list[str]:
    from nephoscope.measure.targets.kinds import parse

    if not isinstance(value, list) or not value:
        raise UsageError("it must be a list of targets.", 'Write, for example, ["local"].')
    for text in value:
        parse(_text(text))
    return value


def _colour(value: Any) -> str:
    if value not in ("auto", "never"):
        raise UsageError(f"'{value}' is no choice.", "Write auto or never.")
    return _text(value)


KEYS: Mapping[str, Key] = {
    "store": Key(
        None,
        "Directory of stored runs or address on object storage, for `--store`; `~` is the home "
        "directory.",
        _store,
    ),
    "confidence": Key(
        "95%",
        "Confidence level of `compare` and `census`, for `--confidence`.",
        _ratio(0.5, 0.9999),
    ),
    "margin": Key(
        "3%",
        "Largest difference of `compare` that counts as equivalent, for `--margin`.",
        _ratio(0.0, 1.0),
    ),
    "targets": Key(
        ["local"], "Hosts that `survey` and `scheduler` measure, for `--target`.", _targets
    ),
    "colour": Key("auto", "Colours on a terminal: auto or never; NO_COLOR means never.", _colour),
}


def checked(key: str, value: Any, source: str) -> Any:
    """Returns the value of a key; UsageError that begins with the source for one of no use."""
    try:
        return KEYS[key].check(value)
    except UsageError as error:
        raise UsageError(f"{source}: {key}: {error.message}", error.hint) from None
