"""Data classes of the project beside those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import Any

import pytest

import nephoscope
from nephoscope.core.records import dataclass

OPTIONS: list[dict[str, bool]] = [
    {"frozen": frozen, "slots": slots, "kw_only": kw_only}
    for frozen in (False, True)
    for slots in (False, True)
    for kw_only in (False, True)
]


def make(decorator: Callable[..., Any], options: dict[str, bool]) -> Any:
    class Point:
        """A point."""

        x: int
        name: str = field(default="a", repr=False)
        tags: list[str] = field(default_factory=list, compare=False)
        last: int = field(default=3, kw_only=True)
        fixed: int = field(default=7, init=False, hash=False)
        made: list[int] = field(default_factory=list, init=False, compare=False)

        def __post_init__(self) -> None:
            self.tags.append("seen")

    return decorator(**options)(Point)


def outcome(call: Callable[[Any], Any], kind: Any) -> Any:
    try:
        return call(kind)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_instances_behave_as_those_of_the_standard_library(options: dict[str, bool]) -> None:
    ours, theirs = make(dataclass, options), make(dataclasses.dataclass, options)
    calls: list[Callable[[Any], Any]] = [
        lambda kind: repr(kind(x=1)),
        lambda kind: dataclasses.asdict(kind(x=1, name="b", last=9)),
        lambda kind: kind(x=1) == kind(x=1, tags=["other"]),
        lambda kind: kind(x=1) == kind(x=2),
        lambda kind: kind(x=1) == 1,
        lambda kind: hash(kind(x=1)) == hash(kind(x=1)),
        lambda kind: hash(kind(x=1)) == hash((1, "a", 3)),
        lambda kind: repr(kind(1)),
        lambda kind: kind(),
        lambda kind: kind(x=1, unknown=2),
        lambda kind: setattr(kind(x=1), "x", 2),
        lambda kind: delattr(kind(x=1), "x"),
        lambda kind: repr(dataclasses.replace(kind(x=1), x=5)),
        lambda kind: repr(copy.deepcopy(kind(x=1))),
        lambda kind: kind(x=1).tags,
        lambda kind: kind.__match_args__,
        lambda kind: vars(kind).get("__slots__"),
        lambda kind: kind.__doc__,
        lambda kind: [(part.name, part.type) for part in dataclasses.fields(kind)],
        lambda kind: str(kind.__dataclass_params__),
    ]
    for call in calls:
        assert outcome(call, ours) == outcome(call, theirs), inspect.getsource(call)


@dataclass(frozen=True, slots=True)
class Pickled:
    x: int
    y: float = 0.5


@dataclass(frozen=True)
class Inheriting(Pickled):
    z: str = ""


def test_frozen_instances_are_pickled() -> None:
    assert pickle.loads(pickle.dumps(Pickled(3))) == Pickled(3)


def test_fields_are_inherited() -> None:
    assert Inheriting(1, z="a") == Inheriting(1, 0.5, "a")
    with pytest.raises(dataclasses.FrozenInstanceError):
        Inheriting(1).x = 2  # type: ignore[misc]


def test_a_class_is_compiled_when_its_first_instance_is_made() -> None:
    kind = make(dataclass, {})
    waiting = kind.__init__
    kind(x=1)
    compiled = kind.__init__
    kind(x=2)
    assert compiled is not waiting
    assert kind.__init__ is compiled


def test_the_package_has_no_data_classes_of_another_kind() -> None:
    package = Path(nephoscope.__file__).parent
    own = package / "core" / "records.py"
    pattern = re.compile(r"^from dataclasses import [^\n]*\bdataclass\b", re.MULTILINE)
    wrong = [
        path
        for path in package.rglob("*.py")
        if path != own and pattern.search(path.read_text(encoding="utf-8"))
    ]
    assert not wrong, "import it from nephoscope.core.records"
