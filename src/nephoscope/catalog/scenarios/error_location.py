"""From the line of a JSON text to the part of the document that stands there."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from nephoscope.core.reading.yamltext import Loc

_LINE = re.compile(r" at line (\d+) column (\d+)")
_PATH = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w-]+)*")
_DECODER = json.JSONDecoder()


def as_text(values: Mapping[str, Any]) -> str:
    """The values as JSON with one key or item a line, so that a line tells which part it is."""
    return json.dumps(dict(values), indent=1, ensure_ascii=False)


def place_in(message: str, text: str, values: Mapping[str, Any]) -> tuple[str, Loc]:
    """A message without the JSON's line in it, and the part of the document that it is about.

    text: as `as_text` gives it. Without a line, a dotted path at the beginning tells the part.
    """
    match = _LINE.search(message)
    if match:
        return _LINE.sub("", message), loc_at(text, int(match[1]))
    loc: list[str | int] = []
    node: Any = values
    path = _PATH.match(message)
    for step in path[0].split(".") if path else ():
        if not isinstance(node, Mapping) or step not in node:
            break
        loc.append(step)
        node = node[step]
    return message, tuple(loc)


def loc_at(text: str, line: int) -> Loc:
    """The part of a document whose JSON has one key or item a line; of a closing bracket, the
    whole that it closes."""
    path: list[str | int] = []
    items: list[int | None] = []
    for number, raw in enumerate(text.split("\n"), start=1):
        words = raw.strip()
        if words[:1] in "}]" and words:
            items.pop()
            loc = tuple(path)
            if path:
                path.pop()
        else:
            if not items:
                loc = ()
            elif (item := items[-1]) is None:
                loc = (*path, _DECODER.raw_decode(words)[0])
            else:
                loc = (*path, item)
                items[-1] = item + 1
            if words.endswith(("{", "[")):
                if items:
                    path.append(loc[-1])
                items.append(0 if words.endswith("[") else None)
        if number == line:
            return loc
    return ()
