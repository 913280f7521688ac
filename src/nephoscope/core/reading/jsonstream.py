"""JSON values in a text that may have other lines before, between and after them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import field
from typing import Any

from nephoscope.core.records import dataclass

_BLANK = re.compile(r"\s*")
_START = re.compile(r"^[ \t]*[\[{]", re.MULTILINE)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_UNFINISHED = re.compile(r"|-|t|tr|tru|f|fa|fal|fals|n|nu|nul|N|Na")
_MAX_RESCANS = 4
"""A text is scanned at most so often in all, however many broken values it has."""


class Repeated(tuple[Any, ...]):
    """The different values of a key that one JSON object has several times."""

    __slots__ = ()

    def __str__(self) -> str:
        return ", ".join(map(str, self))


@dataclass(slots=True)
class Documents:
    """The JSON values of a text.

    values: (line, value) of each object or array. problems: (line, reason) of what begins like one
    and is none. cut_off_at: line on which the text ends inside a value; None where it does not.
    other_lines: number of lines that are no JSON.
    """

    values: list[tuple[int, Any]] = field(default_factory=list)
    problems: list[tuple[int, str]] = field(default_factory=list)
    cut_off_at: int | None = None
    other_lines: int = 0


def documents(text: str) -> Documents:
    """Returns the JSON objects and arrays of a text; never raises. Numbers may be not finite."""
    content = Documents()
    counter = _LineCounter(text)
    left = _MAX_RESCANS * len(text) + 1_000_000
    position = _skip_blank(text, 0)
    while position < len(text) and left > 0:
        if text[position] not in "{[":
            begin, position = position, _next_start(text, position)
            content.other_lines += 1 + text.count("\n", begin, max(begin, position - 1))
            continue
        line = counter.line_of(position)
        try:
            value, end = _DECODER.raw_decode(text, position)
            _check_surrogates(text, position, end, value)
        except json.JSONDecodeError as error:
            left -= max(error.pos - position, 1) + error.pos // 8  # it counts lines from the start
            if _is_at_end(text, error):
                content.cut_off_at = counter.total
                return content
            content.problems.append((error.lineno, f"this is no JSON ({error.msg.lower()})"))
            position = _next_start(text, text.find("\n", position) + 1 or len(text))
        except (ValueError, RecursionError) as error:
            deep = isinstance(error, RecursionError)
            reason = "it is nested too deeply" if deep else str(error)[:100]
            content.problems.append((line, reason))
            left -= 10_000
            position = _next_start(text, text.find("\n", position) + 1 or len(text))
        else:
            content.values.append((line, value))
            position = _skip_blank(text, end)
            if position < len(text) and text[position] == ",":
                position = _skip_blank(text, position + 1)
    return content


def _check_surrogates(text: str, start: int, end: int, value: Any) -> None:
    """ValueError where a value has half of a surrogate pair, which nothing can print or store."""
    if _SURROGATE.search(text, start, end):
        try:
            json.dumps(value, ensure_ascii=False, default=str).encode("utf-8")
        except UnicodeError:
            raise ValueError("it has half of a surrogate pair") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns the object; the values of a key that it has twice are kept where they differ."""
    made = dict(pairs)
    if len(made) < len(pairs):
        several: dict[str, list[Any]] = {}
        for key, value in pairs:
            values = several.setdefault(key, [])
            # Counted by text, because NaN is not equal to itself.
            if all(repr(value) != repr(known) for known in values[-100:]):
                values.append(value)
        made |= {key: Repeated(values) for key, values in several.items() if len(values) > 1}
    return made


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=float)


def _skip_blank(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position


def _next_start(text: str, position: int) -> int:
    """Returns where the next line begins that may begin a value; the text's end for none."""
    match = _START.search(text, position)
    return match.end() - 1 if match else len(text)


def _is_at_end(text: str, error: json.JSONDecodeError) -> bool:
    """States whether a value is wrong only because the text ends."""
    rest = text[error.pos : error.pos + 2_000].rstrip()
    if error.msg.startswith("Unterminated string"):
        return text.find('"', error.pos + 1) < 0
    if error.msg.startswith("Invalid \\"):
        return len(text) - error.pos < 8
    return _UNFINISHED.fullmatch(rest) is not None


class _LineCounter:
    """Lines of ascending positions, in one pass."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._line = text, 0, 1

    def line_of(self, position: int) -> int:
        self._line += self._text.count("\n", self._at, position)
        self._at = position
        return self._line

    @property
    def total(self) -> int:
        return self._text.rstrip("\n").count("\n") + 1


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yields the objects of an array, or the one object that a value is."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            yield item
