"""Text from outside as a terminal may have it: without anything that the terminal would obey."""

from __future__ import annotations

import re

_SEQUENCE = r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"
# Control and direction characters, and those that break lines where "\n" does not.
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
_STYLE = r"\x1b\[(?:[0-4]|3[1-6])?(?:;(?:[0-4]|3[1-6]))*m"
_ALL = re.compile(f"{_SEQUENCE}|{_CONTROL}")
_ALL_BUT_STYLES = re.compile(f"({_STYLE})|{_SEQUENCE}|{_CONTROL}")
_CONTROL_CHARACTER = re.compile(_CONTROL)


def printable(text: str, *, styled: bool = False) -> str:
    """Returns the text with a blank for each control character and escape sequence.

    Line feeds and tabs stay. styled: so do the colours and weights of our own reports.
    """
    if styled:
        return _ALL_BUT_STYLES.sub(lambda match: match[1] or " ", text)
    return _ALL.sub(" ", text)


def escaped(text: str) -> str:
    r"""Returns a JSON text with each control character as `\u….`, which means the same."""
    return _CONTROL_CHARACTER.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
