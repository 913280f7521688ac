"""Binds a plan's factors to what they set: paths and levels, checked against the plan."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from nephoscope.catalog import BenchmarkSpec
from nephoscope.core.errors import PlanError
from nephoscope.core.reading.sentences import choices, did_you_mean
from nephoscope.core.reading.validation_errors import ValidationErrors
from nephoscope.core.reading.yamltext import Loc
from nephoscope.measure.plans.context import AGGRESSOR, PlanContext
from nephoscope.measure.plans.factors.bound import (
    EACH,
    NONE,
    BoundFactor,
    Level,
    param_levels,
    scalar,
)
from nephoscope.measure.plans.factors.lab import bind_condition
from nephoscope.measure.plans.model import Entry, Factor

RESERVED = ("arm", "benchmark", "client", "hook", "load", "peer", "target", "together")
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
    errors = ValidationErrors()
    bound = []
    paths: dict[str, str] = {}
    for name, factor in context.plan.factors.items():
        with errors.of_part():
            bound.append(_bind_new(context, name, factor, paths))
    errors.report()
    return tuple(bound)


def _bind_new(
    context: PlanContext, name: str, factor: Factor, paths: dict[str, str]
) -> BoundFactor:
    """Returns a factor of a path that no factor before it sets. paths: path -> name so far."""
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
    return bound_factor


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


def bind_load(context: PlanContext, name: str, factor: Factor, steps: Sequence[str]) -> BoundFactor:
    """Returns the factor of one background: whether it runs, or one of its parameters."""
    loc: Loc = ("factors", name)
    known = {load.name: load for load in context.plan.backgrounds}
    load = known.get(steps[1])
    if load is None:
        raise _unknown_background(context, (*loc, "path"), steps[1], list(known))
    blocked = bool(factor.blocked)
    if steps[2:] == ["active"]:
        for level in factor.levels:
            if not isinstance(level, bool):
                message = f"a background is active or not, not {level!r}."
                raise context.error((*loc, "levels"), message, "Write levels: [false, true].")
        levels = tuple(Level(value, value) for value in factor.levels)
        return BoundFactor(name, "load active", levels, background=load.name, blocked=blocked)
    if len(steps) != 4 or steps[2] != "params" or not load.benchmark:
        hint = "Of a background that is backgrounds.NAME.active or backgrounds.NAME.params.PARAM."
        raise context.error((*loc, "path"), f"a factor cannot set '{factor.path}'.", hint)
    param = steps[3]
    if param in load.params:
        message = f"the background '{load.name}' gives '{param}' itself."
        raise context.error((*loc, "path"), message, "Keep it in one of the two.")
    spec = context.spec(load.benchmark, ("backgrounds", list(known).index(load.name)))
    return BoundFactor(
        name,
        "load param",
        param_levels(context, spec, param, factor, loc),
        key=param,
        background=load.name,
        blocked=blocked,
        spec=spec,
    )


def bind_all_loads(
    context: PlanContext, name: str, factor: Factor, steps: Sequence[str]
) -> BoundFactor:
    """Returns the factor of every load that runs: number of targets, or a parameter."""
    loc: Loc = ("factors", name)
    at: Loc = (*loc, "path")
    loads = [
        (number, load) for number, load in enumerate(context.plan.backgrounds) if load.benchmark
    ]
    if not loads:
        message = "the plan has no background that runs."
        raise context.error(at, message, "Add one, or vary another thing.")
    blocked = bool(factor.blocked)
    if steps[2:] == ["count"]:
        available = min(
            len(context.resolve_roles(load.on or (AGGRESSOR,), ("backgrounds", number, "on")))
            for number, load in loads
        )
        return BoundFactor(name, "count", _counts(context, factor, loc, available), blocked=blocked)
    if len(steps) != 4 or steps[2] != "params":
        hint = "Of every background that is backgrounds.*.count or backgrounds.*.params.PARAM."
        raise context.error(at, f"a factor cannot set '{factor.path}'.", hint)
    param = steps[3]
    specs = [context.spec(load.benchmark, ("backgrounds", number)) for number, load in loads]
    with_param = [spec for spec in specs if any(each.id == param for each in spec.params)]
    if not with_param:
        message = f"no background has a parameter '{param}'."
        raise context.error(at, message, "`nephoscope list ID` shows the parameters of a load.")
    levels = [param_levels(context, spec, param, factor, loc) for spec in with_param]
    return BoundFactor(
        name, "each param", levels[0], key=param, blocked=blocked, spec=with_param[0]
    )


def _counts(context: PlanContext, factor: Factor, loc: Loc, available: int) -> tuple[Level, ...]:
    """Levels of backgrounds.*.count: up to the number of targets that every load has."""
    for position, raw in enumerate(factor.levels):
        if isinstance(raw, bool) or not isinstance(raw, int) or not 1 <= raw <= available:
            raise context.error(
                (*loc, "levels", position),
                f"loads cannot run on {raw!r} targets: every background has {available}.",
                f"Write numbers from 1 to {available}.",
            )
    return tuple(Level(raw, raw) for raw in factor.levels)


def active_levels(context: PlanContext, name: str, raw_levels: Sequence[Any]) -> tuple[Level, ...]:
    """Returns the levels of `backgrounds`: the names of those that run."""
    known = [load.name for load in context.plan.backgrounds]
    levels = []
    for position, raw in enumerate(raw_levels):
        names = raw if isinstance(raw, list) else [] if raw == NONE else [raw]
        for each in names:
            if each not in known:
                at: Loc = ("factors", name, "levels", position)
                raise _unknown_background(context, at, str(each), known, NONE)
        active = tuple(each for each in known if each in names)
        levels.append(Level("+".join(sorted(active)) or NONE, active))
    return tuple(levels)


def _unknown_background(
    context: PlanContext, loc: Loc, name: str, known: Sequence[str], *words: str
) -> PlanError:
    hint = choices("The plan has", known, "The plan has no `backgrounds`; add one.")
    hint += "".join(f" '{word}' runs none of them." for word in words)
    message = f"there is no background '{name}'{did_you_mean(name, [*known, *words])}."
    return context.error(loc, message, hint)
