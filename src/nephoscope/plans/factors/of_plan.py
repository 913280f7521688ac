"""Binds a plan's factors to what they set: paths and levels, checked against the plan."""

from __future__ import annotations

import json
from collections.abc import Sequence

from nephoscope.catalog import BenchmarkSpec
from nephoscope.plans.context import PlanContext
from nephoscope.plans.factors.bound import EACH, BoundFactor, Level, param_levels, scalar
from nephoscope.plans.factors.lab import bind_condition
from nephoscope.plans.factors.loads import active_levels, bind_all_loads, bind_load
from nephoscope.plans.model import Entry, Factor
from nephoscope.reading.yamltext import Loc

RESERVED = ("arm", "benchmark", "hook", "load", "peer", "target", "together")
"""Names that results give to factors of their own."""


def bind_entry_factors(entry: Entry, number: int, spec: BenchmarkSpec) -> list[BoundFactor]:
    """Returns an entry's own factors; their values are checked already."""
    return [
        BoundFactor(
            name,
            "param",
            tuple(Level(scalar(value), value) for value in values),
            key=name,
            entry=number,
            spec=spec,
        )
        for name, values in entry.factors.items()
    ]


def bind_plan_factors(context: PlanContext) -> tuple[BoundFactor, ...]:
    """Returns the plan's own factors. PlanError for what cannot be set."""
    bound = []
    paths: dict[str, str] = {}
    for name, factor in context.plan.factors.items():
        loc: Loc = ("factors", name)
        if name in RESERVED:
            message = f"a factor cannot be named '{name}': results use that name."
            raise context.error(loc, message, "Rename it.")
        if factor.path in paths:
            message = f"'{name}' and '{paths[factor.path]}' set the same thing."
            raise context.error((*loc, "path"), message, "Keep one of them.")
        paths[factor.path] = name
        bound_factor = _bind(context, name, factor)
        for texts in (
            [json.dumps(level.label, default=str) for level in bound_factor.levels],
            [json.dumps(level.value, default=str) for level in bound_factor.levels],
        ):
            if len(set(texts)) < len(texts):
                message = f"the factor '{name}' has the same level twice."
                raise context.error((*loc, "levels"), message, "Remove one.")
        bound.append(bound_factor)
    return tuple(bound)


def _bind(context: PlanContext, name: str, factor: Factor) -> BoundFactor:
    steps = factor.path.split(".")
    if steps[0] == "lab" and len(steps) > 1:
        return bind_condition(context, name, factor)
    if factor.path == "backgrounds":
        return BoundFactor(name, "loads", active_levels(context, name, factor.levels))
    if steps[:2] == ["backgrounds", EACH]:
        return bind_all_loads(context, name, factor, steps)
    if steps[0] == "backgrounds" and len(steps) in (3, 4):
        return bind_load(context, name, factor, steps)
    if steps[0] == "benchmarks" and len(steps) == 4 and steps[2] == "params":
        return _bind_param(context, name, factor, steps)
    hint = "It may be lab.…, backgrounds, backgrounds.NAME.active, backgrounds.NAME.params.PARAM, "
    hint += "backgrounds.*.params.PARAM, backgrounds.*.count or benchmarks.N.params.PARAM."
    if steps[0] == "targets":
        hint = "Each target is an alternative of its own already; vary its host: lab.hosts.NAME.…"
    message = f"a factor cannot set '{factor.path}'."
    raise context.error(("factors", name, "path"), message, hint)


def _bind_param(
    context: PlanContext, name: str, factor: Factor, steps: Sequence[str]
) -> BoundFactor:
    loc: Loc = ("factors", name)
    number, param = steps[1], steps[3]
    entries = context.plan.benchmarks
    if not (number.isdecimal() and int(number) < len(entries)):
        raise context.error(
            (*loc, "path"),
            f"'{number}' is no position among {len(entries)} benchmarks.",
            "Positions count from 0: benchmarks.0.params.threads.",
        )
    entry = entries[int(number)]
    if param in entry.params or param in entry.factors:
        message = f"benchmarks.{number} gives '{param}' itself."
        raise context.error((*loc, "path"), message, "Keep it in one of the two.")
    if name in entry.factors:
        message = f"benchmarks.{number} has a factor '{name}' of its own."
        raise context.error(loc, message, "Rename one.")
    spec = context.catalog.benchmark(entry.benchmark)
    return BoundFactor(
        name,
        "param",
        param_levels(context, spec, param, factor, loc),
        key=param,
        entry=int(number),
        blocked=bool(factor.blocked),
        spec=spec,
    )
