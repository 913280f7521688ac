"""Binds factors of the background loads: which of them run, on how many targets, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nephoscope.errors import PlanError
from nephoscope.plans.context import AGGRESSOR, PlanContext
from nephoscope.plans.factors.bound import NONE, BoundFactor, Level, param_levels
from nephoscope.plans.model import Factor
from nephoscope.reading.sentences import did_you_mean
from nephoscope.reading.yamltext import Loc


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
    hint = f"The plan has: {', '.join(known) or 'none'}"
    hint += "".join(f"; '{word}' runs none of them" for word in words)
    message = f"there is no background '{name}'{did_you_mean(name, [*known, *words])}."
    return context.error(loc, message, f"{hint}.")
