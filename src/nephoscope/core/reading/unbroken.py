"""Commands in a text that is broken into lines: none breaks in the middle, so that it can be
copied."""

from __future__ import annotations

import re
import textwrap

_GLUE = "\ue000"
"""Stands for the blanks of a command while lines are broken; no text of ours has it."""
_COMMAND = re.compile(r"`[^`\n]+`")


def glued(text: str, room: int | None = None) -> str:
    """Returns the text, in which no line breaks within a command between backticks.

    room: columns of a line; a command that is longer breaks at its blanks. `unglued` restores it.
    """

    def joined(match: re.Match[str]) -> str:
        fits = room is None or len(match[0]) <= room
        return match[0].replace(" ", _GLUE) if fits else match[0]

    return _COMMAND.sub(joined, text)


def unglued(text: str) -> str:
    """Returns the text of `glued`, after its lines were broken."""
    return text.replace(_GLUE, " ")


def lines_of(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Returns a text in lines of at most `width` columns; words and commands stay whole, also where
    they are longer. `first` and `rest` begin the lines."""
    lines = textwrap.wrap(
        glued(text),
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [unglued(line) for line in lines]


_WORD = re.compile(r"(?:'[^']*'|\"[^\"]*\"|\S)+")


def shell_lines(line: str, width: int, indent: str = "    ") -> list[str]:
    """Returns a command in lines that a shell takes as one: each but the last ends with a
    backslash, and breaks before an option. indent: begins the lines after the first."""
    parts: list[str] = []
    for word in _WORD.findall(line):
        if word.startswith("-") or not parts:
            parts.append(word)
        else:
            parts[-1] += f" {word}"
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) + len(" ") + len(" \\") <= width:
            lines[-1] += f" {part}"
        else:
            lines.append(indent + part)
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]
