"""A factor as a plan's settings need it: what it sets, and its levels."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import Any

from nephoscope.catalog import BenchmarkSpec
from nephoscope.errors import UsageError
from nephoscope.plans.model import Factor
from nephoscope.plans.parameters import checked_param, checked_value
from nephoscope.reading.sentences import Place
from nephoscope.reading.yamltext import Loc

EACH = "*"
"""In a path, instead of a background's name: every load that runs."""

NONE = "none"
"""Level of `backgrounds` at which no load runs."""


@dataclass(frozen=True, slots=True)
class Level:
    """One level: its name in results (a JSON scalar), and the value in the units it is set in."""

    label: Any
    value: Any


@dataclass(frozen=True, slots=True)
class BoundFactor:
    """A factor and what it sets.

    sets: 'param' of the benchmark, 'lab' condition, 'load param' of a background, 'load active',
    'loads' (which of them run), 'each param' (of every load that runs) or 'count' (on how many of
    its targets each of them runs). key: the parameter, or the path into the topology. of: the
    background's name. entry: the only entry that it varies, None for all. spec: of the benchmark
    whose parameter it is.
    """

    name: str
    sets: str
    levels: tuple[Level, ...]
    key: str = ""
    of: str = ""
    entry: int | None = None
    blocked: bool = False
    spec: BenchmarkSpec | None = None

    @property
    def of_loads(self) -> bool:
        """Whether it says how loads run, whichever they are: without a load it says nothing."""
        return self.sets in ("each param", "count")

    @property
    def without(self) -> Any:
        """Its level where no load runs: a number is 0 then, and a word is none."""
        numbers = all(
            isinstance(one.label, int | float) and not isinstance(one.label, bool)
            for one in self.levels
        )
        return 0 if numbers else NONE

    def level(self, raw: Any) -> Level | None:
        """The level that `raw` names, in whatever unit; None if there is none."""
        wanted = [raw]
        if self.spec is not None:
            with contextlib.suppress(UsageError):
                wanted.append(checked_value(self.spec.id, self.spec.param(self.key), raw))
        if self.sets == "loads" and isinstance(raw, list):
            wanted.append("+".join(sorted(map(str, raw))))
        for level in self.levels:
            if any(same(level.label, one) or same(level.value, one) for one in wanted):
                return level
        return None


def same(one: Any, other: Any) -> bool:
    """Whether two values say the same in JSON: 1 and true do not."""
    return json.dumps(one, default=str) == json.dumps(other, default=str)


def scalar(value: Any) -> Any:
    """A JSON scalar: a list becomes its canonical text, since a factor's level is one thing."""
    return json.dumps(value, separators=(",", ":")) if isinstance(value, list | dict) else value


def levels_of(
    spec: BenchmarkSpec, param: str, factor: Factor, loc: Loc, place: Place
) -> tuple[Level, ...]:
    """The levels of a parameter in its own unit."""
    found = []
    for position, raw in enumerate(factor.levels):
        given: Loc = (*loc, "levels", position)
        value = checked_param(spec, param, raw, (*loc, "path"), given, place)
        found.append(Level(scalar(value), value))
    return tuple(found)
