"""Factors bound to what they set, with their levels in the units in which they are set."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from nephoscope.catalog import BenchmarkSpec
from nephoscope.core.errors import UsageError
from nephoscope.core.reading.yamltext import Loc
from nephoscope.core.records import dataclass
from nephoscope.measure.plans.context import PlanContext
from nephoscope.measure.plans.model import Factor
from nephoscope.measure.plans.parameters import convert_value

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
    its targets each of them runs). key: the parameter, or the path into the topology. background:
    its name. entry: the only entry that it varies, None for all. spec: of the benchmark whose
    parameter it is.
    """

    name: str
    sets: str
    levels: tuple[Level, ...]
    key: str = ""
    background: str = ""
    entry: int | None = None
    blocked: bool = False
    spec: BenchmarkSpec | None = None

    @property
    def describes_loads(self) -> bool:
        """Returns whether it sets how loads run, whichever they are: without a load it has no
        effect."""
        return self.sets in ("each param", "count")

    @property
    def level_without_load(self) -> Any:
        """The level where no load runs: 0 among numbers, else `none`."""
        numbers = all(
            isinstance(level.label, int | float) and not isinstance(level.label, bool)
            for level in self.levels
        )
        return 0 if numbers else NONE

    def level(self, raw: Any) -> Level | None:
        """Returns the level that `raw` names, in whatever unit; None if there is none."""
        names = [raw]
        if self.spec is not None:
            with contextlib.suppress(UsageError):
                names.append(convert_value(self.spec.id, self.spec.param(self.key), raw))
        if self.sets == "loads" and isinstance(raw, list):
            names.append("+".join(sorted(map(str, raw))))
        texts = {_json(name) for name in names}
        for level in self.levels:
            if _json(level.label) in texts or _json(level.value) in texts:
                return level
        return None


def _json(value: Any) -> str:
    """The value as JSON, in which 1 and true differ."""
    return json.dumps(value, default=str)


def scalar(value: Any) -> Any:
    """Returns a JSON scalar: a list becomes its canonical text, since a level is one value."""
    return json.dumps(value, separators=(",", ":")) if isinstance(value, list | dict) else value


def param_levels(
    context: PlanContext, spec: BenchmarkSpec, param: str, factor: Factor, loc: Loc
) -> tuple[Level, ...]:
    """Returns the levels of a parameter in its own unit."""
    values = [
        context.convert(spec, param, raw, (*loc, "path"), (*loc, "levels", position))
        for position, raw in enumerate(factor.levels)
    ]
    return tuple(Level(scalar(value), value) for value in values)
