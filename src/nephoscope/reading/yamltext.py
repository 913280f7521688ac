"""YAML text to plain values, and back from a place in the values to line and column.

Scalars follow the YAML 1.2 core schema: PyYAML alone reads `no` as false, `1:30` as 90 and `010`
as 8, which in a plan would be another experiment than the one that was written. PyYAML's C parser
reads (0.04 s for a plan of 2000 lines); ruamel is asked for the place only when there is an error.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml

from nephoscope.errors import PlanError

try:
    from yaml import CSafeLoader as _Base
except ImportError:  # a PyYAML that was built without libyaml reads the same, slower
    from yaml import SafeLoader as _Base  # type: ignore[assignment]

Loc = tuple[str | int, ...]
"""A place in a document: keys and indices from the root."""

MAX_TEXT_BYTES = 1 << 20
MAX_DEPTH = 50


class _Loader(_Base):
    """YAML 1.2 core schema, duplicate keys refused."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    # No leading zero: `010` would be read as 8 by some and as 10 by others, so it stays a text.
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?",
        "-+.0123456789",
    ),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first)
    )


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        key = key_node.value
        if isinstance(key, str) and key in seen and key != "<<":
            raise yaml.constructor.ConstructorError(
                None, None, f"the key '{key}' is there twice", key_node.start_mark
            )
        if isinstance(key, str):
            seen.add(key)
    loader.flatten_mapping(node)
    return yaml.constructor.SafeConstructor.construct_mapping(loader, node, deep=True)


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def parse(text: str, name: str) -> Any:
    """The values of a YAML text. PlanError with `name:line:column` when it is not YAML."""
    try:
        _refuse_depth(text)
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        problem = (error.problem or error.context or "it cannot be read").rstrip(".")
        raise PlanError(
            f"{place}: this is no valid YAML: {problem}.",
            "Correct that line; indentation is by spaces.",
        ) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise PlanError(
            f"{name}: this is no valid YAML: {reason}.", "A plan is plain UTF-8 text."
        ) from error


def parse_scalar(text: str) -> Any:
    """The value of a `name=value` on the command line, read as a YAML value; text if it is none."""
    try:
        _refuse_depth(text)
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError):
        return text


def _refuse_depth(text: str) -> None:
    """ValueError for nesting so deep that composing it would overflow the C stack."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                place = f"line {event.start_mark.line + 1}" if event.start_mark else "it"
                raise ValueError(f"{place} is nested deeper than {MAX_DEPTH} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def locate(text: str, loc: Sequence[str | int]) -> tuple[int, int] | None:
    """Line and column (from 1) of a place, or of its nearest parent that is in the text."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        node: Any = YAML(typ="rt").load(text)
    except (YAMLError, ValueError):
        return None
    place: tuple[int, int] | None = None
    for step in loc:
        try:
            line, column = node.lc.key(step) if isinstance(step, str) else node.lc.item(step)
            node = node[step]
        except (AttributeError, KeyError, IndexError, TypeError):
            break
        place = (line + 1, column + 1)
    return place
