"""YAML text to plain values, and back from a place in the values to line and column.

Scalars follow the YAML 1.2 core schema: PyYAML alone reads `no` as false, `1:30` as 90 and `010`
as 8, which in a plan would be another experiment than the one that was written. PyYAML's C parser
reads (0.04 s for a plan of 2000 lines).
"""

from __future__ import annotations

import contextlib
import gc
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from nephoscope.core import limits
from nephoscope.core.errors import PlanError

try:
    from yaml import CSafeLoader as _Base
except ImportError:  # a PyYAML that was built without libyaml reads the same, slower
    from yaml import SafeLoader as _Base  # type: ignore[assignment]

Loc = tuple[str | int, ...]
"""A place in a document: keys and indices from the root."""

_TAG = "tag:yaml.org,2002:"
_CORE = frozenset(f"{_TAG}{name}" for name in ("bool", "null", "int", "float"))
_PLAIN = {
    f"{_TAG}str": yaml.ScalarEvent,
    f"{_TAG}seq": yaml.SequenceStartEvent,
    f"{_TAG}map": yaml.MappingStartEvent,
}


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
    with _naming_place(name):
        values = _values(text)
    if len(values) > 1:
        raise PlanError(
            f"{name}: there are several YAML documents ('---') in this file; one is expected.",
            "Put each document into a file of its own.",
        )
    return values[0] if values else None


def parse_all(text: str, name: str) -> list[Any]:
    """The values of each document of a YAML text, None of an empty one. Raises as `parse`."""
    with _naming_place(name):
        return _values(text)


@contextlib.contextmanager
def _naming_place(name: str) -> Iterator[None]:
    """Raises PlanError for what the parser raises inside."""
    try:
        yield
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        problem = (error.problem or error.context or "it cannot be read").rstrip(".")
        raise PlanError(
            f"{place}: this is no valid YAML: {problem}.",
            "Correct that line; indentation is by spaces.",
        ) from error
    except (yaml.YAMLError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise PlanError(
            f"{name}: this is no valid YAML: {reason}.", "A plan is plain UTF-8 text."
        ) from error


def parse_scalar(text: str) -> Any:
    """The value of a `name=value` on the command line, read as a YAML value; text if it is none."""
    try:
        values = _values(text)
    except (yaml.YAMLError, ValueError):
        return text
    return values[0] if len(values) == 1 else text if values else None


def _values(text: str) -> list[Any]:
    """Returns the values of each document of a text. Raises YAMLError or ValueError."""
    with _collecting_later():
        _Bounds().check(text)
        return [*yaml.load_all(text, Loader=_Loader)]


class _Bounds:
    """Refuses a text by its events, before anything is built of it.

    Deep nesting would overflow the C stack of the composer; aliases and merge keys that hold one
    another grow without bound; a tag may ask for what no JSON has, or for a number without digits.
    """

    def __init__(self) -> None:
        self._open: list[tuple[int, str | None]] = []
        self._sizes: dict[str, int] = {}
        self._nodes = 0
        self._resolver = yaml.resolver.Resolver()
        self._resolver.yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers

    def check(self, text: str) -> None:
        """Raises MarkedYAMLError with the place of what is too much."""
        for event in yaml.parse(text, Loader=_Loader):
            problem = self._problem(event)
            if problem:
                mark: Any = event.start_mark
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)

    def _problem(self, event: yaml.Event) -> str:
        problem = ""
        if isinstance(event, yaml.CollectionStartEvent):
            self._open.append((self._nodes, event.anchor))
            self._nodes += 1
            problem = self._tag_problem(event, "")
            if len(self._open) > limits.YAML_DEPTH:
                problem = f"this is nested deeper than {limits.YAML_DEPTH} levels"
        elif isinstance(event, yaml.CollectionEndEvent):
            before, anchor = self._open.pop()
            if anchor is not None:
                self._sizes[anchor] = self._nodes - before
        elif isinstance(event, yaml.AliasEvent):
            size = self._sizes.get(str(event.anchor))
            if size is None:
                problem = f"the alias '{event.anchor}' has no anchor before it, or is inside it"
            self._nodes += size or 0
        elif isinstance(event, yaml.ScalarEvent):
            self._nodes += 1
            if event.anchor is not None:
                self._sizes[event.anchor] = 1
            problem = self._tag_problem(event, event.value)
        if self._nodes > limits.YAML_NODES:
            problem = f"this has more than {limits.YAML_NODES:,} values, aliases in full"
        return problem

    def _tag_problem(self, event: Any, text: str) -> str:
        """Why a value's type cannot be; empty where it can."""
        if event.tag in _PLAIN and _PLAIN[event.tag] is not type(event):
            return f"the value does not fit its tag !!{event.tag.rpartition(':')[2]}"
        if event.tag is not None and event.tag not in {*_PLAIN, *_CORE, "!"}:
            return "only the tags !!str, !!int, !!float, !!bool, !!null, !!seq and !!map are known"
        is_collection = isinstance(event, yaml.CollectionStartEvent)
        tag = event.tag
        if not is_collection and tag is None and event.implicit[0]:
            tag = self._tag_of(text)
        elif tag in _CORE and (is_collection or self._tag_of(text) != tag):
            return f"the value does not fit its tag !!{tag.rpartition(':')[2]}"
        if tag == f"{_TAG}float" and not math.isfinite(float(text)):
            return "this number is too large"
        if tag == f"{_TAG}int" and len(text) > limits.NUMBER_DIGITS:
            return f"this number has more than {limits.NUMBER_DIGITS} digits"
        return ""

    def _tag_of(self, text: str) -> str:
        """The tag that a plain scalar of this text has."""
        resolve: Any = self._resolver.resolve
        return str(resolve(yaml.ScalarNode, text, (True, False)))


class Positions:
    """Where the values are of a YAML text that was parsed, and so is within the bounds.

    The text is composed once, when it is first asked, and what a mapping has is looked up by its
    key: each of 100,000 mistakes asks for its place.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._nodes: list[yaml.Node] | None = None
        self._children: dict[int, dict[str, tuple[yaml.Mark, Any]]] = {}

    def locate(self, loc: Sequence[str | int], document: int = 0) -> tuple[int, int] | None:
        """Returns line and column (from 1) of a place, or of its nearest parent in the text.

        document: its position among those of the text.
        """
        if self._nodes is None:
            try:
                with _collecting_later():
                    self._nodes = [*yaml.compose_all(self._text, Loader=_Loader)]
            except (yaml.YAMLError, ValueError):
                self._nodes = []
        node: Any = self._nodes[document] if document < len(self._nodes) else None
        place: tuple[int, int] | None = None
        for step in loc:
            child = self._child(node, step)
            if child is None:
                break
            mark, node = child
            place = (mark.line + 1, mark.column + 1)
        return place

    def _child(self, node: Any, step: str | int) -> tuple[yaml.Mark, Any] | None:
        """Returns where a key or an item begins, and its value; None where there is none."""
        if isinstance(node, yaml.MappingNode):
            children = self._children.get(id(node))
            if children is None:
                children = {
                    key.value: (key.start_mark, value)
                    for key, value in node.value
                    if isinstance(key.value, str)
                }
                self._children[id(node)] = children
            return children.get(str(step))
        if not (isinstance(node, yaml.SequenceNode) and isinstance(step, int)):
            return None
        return (node.value[step].start_mark, node.value[step]) if step < len(node.value) else None


def locate(text: str, loc: Sequence[str | int]) -> tuple[int, int] | None:
    """Returns the line and column of one place; see `Positions`."""
    return Positions(text).locate(loc)


@contextlib.contextmanager
def _collecting_later() -> Iterator[None]:
    """Keeps the search for cycles from going through all nodes again and again while they are
    made, which takes half of the time of a text of 1 MiB."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
