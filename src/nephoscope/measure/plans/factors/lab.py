"""Binds factors that set a condition of the lab."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from nephoscope.core.errors import UsageError
from nephoscope.core.reading.yamltext import Loc
from nephoscope.measure.plans.context import PlanContext
from nephoscope.measure.plans.factors.bound import BoundFactor, Level, scalar
from nephoscope.measure.plans.model import Factor, Plan

if TYPE_CHECKING:
    from nephoscope.measure.lab.topology import Topology

_NEEDS_NEW_HOST = re.compile(r"hosts\.[^.]+\.(platform|memory|vcpus)")

_MAX_TRIED = 256
"""Combinations of other conditions that are tried to find one in which a level is possible."""


def bind_condition(context: PlanContext, name: str, factor: Factor) -> BoundFactor:
    """Returns the factor of lab.PATH: labels as in the plan, values in the topology's units."""
    loc: Loc = ("factors", name)
    if context.topology is None:
        raise context.error(
            (*loc, "path"),
            f"'{factor.path}' is a condition of a lab; the plan has none.",
            "Give it one with `lab: topology.yaml`.",
        )
    path = factor.path.removeprefix("lab.")
    levels = tuple(
        Level(scalar(raw), convert_condition(context, path, raw, (*loc, "levels", position), loc))
        for position, raw in enumerate(factor.levels)
    )
    blocked = factor.blocked
    if blocked is None:
        blocked = _NEEDS_NEW_HOST.fullmatch(path) is not None
    return BoundFactor(name, "lab", levels, key=path, blocked=blocked)


def convert_condition(context: PlanContext, path: str, raw: Any, value_loc: Loc, loc: Loc) -> Any:
    """Returns the value of a condition in the topology's own units.

    value_loc, loc: places of its value, and of the record that names its path. A level may need
    another factor's (a jitter its delay), so that those are tried as well.
    """
    from nephoscope.measure.lab import files

    assert context.topology is not None
    first: UsageError | None = None
    for conditions in _other_conditions(context.plan, path):
        try:
            if not conditions:
                files.with_condition(context.topology, path, raw)
            return apply_conditions(context.topology, {**conditions, path: raw})[path]
        except UsageError as error:
            if error.message.startswith(f"'{path}'"):
                raise context.error((*loc, "path"), error.message, error.hint) from error
            first = first or error
    assert first is not None
    raise context.error(value_loc, first.message, first.hint) from first


def _other_conditions(plan: Plan, path: str) -> Iterator[dict[str, Any]]:
    """Nothing, then combinations of the other conditions' levels, up to a limit."""
    yield {}
    conditions = {
        factor.path.removeprefix("lab."): factor.levels
        for factor in plan.factors.values()
        if factor.path.startswith("lab.") and factor.path != f"lab.{path}"
    }
    for levels in itertools.islice(itertools.product(*conditions.values()), _MAX_TRIED):
        yield dict(zip(conditions, levels, strict=True))


def apply_conditions(topology: Topology, conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Returns conditions set all at once: path -> value in the topology's own units.

    Raises UsageError for a combination that a lab cannot have.
    """
    from nephoscope.measure.lab import files

    changed = files.values_of(files.with_conditions(topology, conditions))
    converted: dict[str, Any] = {}
    for path in conditions:
        value: Any = changed
        for step in path.split("."):
            value = value[step]
        converted[path] = value
    return converted
