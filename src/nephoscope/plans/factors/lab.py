"""Factors that set a condition of the lab."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from nephoscope.errors import PlanError, UsageError
from nephoscope.plans.factors.bound import BoundFactor, Level, scalar
from nephoscope.plans.model import Factor, Plan
from nephoscope.reading.sentences import Place
from nephoscope.reading.yamltext import Loc

if TYPE_CHECKING:
    from nephoscope.lab.topology import Topology

_DEAR = re.compile(r"hosts\.[^.]+\.(platform|memory|vcpus)")
"""Conditions for which a host is made anew."""


_TRIED = 256
"""Combinations of other conditions that are tried to find one in which a level is possible."""


def of_lab(
    plan: Plan, name: str, factor: Factor, topology: Topology | None, loc: Loc, place: Place
) -> BoundFactor:
    """The lever of lab.PATH: levels as the plan has them, values in the topology's units."""
    if topology is None:
        raise PlanError(
            f"{place((*loc, 'path'))}'{factor.path}' is a condition of a lab; the plan has none.",
            "Give it one with `lab: topology.yaml`.",
        )
    path = factor.path.removeprefix("lab.")
    levels = []
    for position, raw in enumerate(factor.levels):
        value = condition(plan, topology, path, raw, (*loc, "levels", position), loc, place)
        levels.append(Level(scalar(raw), value))
    dear = _DEAR.fullmatch(path) is not None if factor.blocked is None else factor.blocked
    return BoundFactor(name, "lab", tuple(levels), key=path, blocked=dear)


def condition(
    plan: Plan, topology: Topology, path: str, raw: Any, given: Loc, loc: Loc, place: Place
) -> Any:
    """The value of a condition in the topology's own units. given, loc: where its value, and the
    record that names its path, stand in the plan.

    A level may need another factor's (a jitter its delay), so that those are tried as well.
    """
    from nephoscope.lab import files

    first: UsageError | None = None
    for others in _other_conditions(plan, path):
        try:
            if not others:
                files.check_path(topology, path, raw)
            return applied(topology, {**others, path: raw})[path]
        except UsageError as error:
            if error.message.startswith(f"'{path}'"):
                raise PlanError(f"{place((*loc, 'path'))}{error.message}", error.hint) from error
            first = first or error
    assert first is not None
    raise PlanError(f"{place(given)}{first.message}", first.hint) from first


def _other_conditions(plan: Plan, path: str) -> Iterator[dict[str, Any]]:
    """Nothing, then the combinations of the other conditions' levels, as far as they are few."""
    yield {}
    others = {
        factor.path.removeprefix("lab."): factor.levels
        for factor in plan.factors.values()
        if factor.path.startswith("lab.") and factor.path != f"lab.{path}"
    }
    for levels in itertools.islice(itertools.product(*others.values()), _TRIED):
        yield dict(zip(others, levels, strict=True))


def applied(topology: Topology, conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Conditions set all at once: path -> value in the topology's own units.

    Raises UsageError for a combination that a lab cannot have.
    """
    from nephoscope.lab import files

    values = files.values_of(topology)
    for path, raw in conditions.items():
        node = values
        *steps, last = path.split(".")
        for step in steps:
            if not isinstance(node.get(step), dict):
                node[step] = {}
            node = node[step]
        node[last] = raw
    changed = files.values_of(files.from_values(values))
    found: dict[str, Any] = {}
    for path in conditions:
        value: Any = changed
        for step in path.split("."):
            value = value[step]
        found[path] = value
    return found
