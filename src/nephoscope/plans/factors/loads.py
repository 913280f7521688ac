"""Factors of the loads beside a trial: which of them run, on how many targets, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nephoscope.catalog import Catalog
from nephoscope.errors import PlanError
from nephoscope.plans import roles
from nephoscope.plans.check import spec_of
from nephoscope.plans.factors.bound import NONE, BoundFactor, Level, levels_of
from nephoscope.plans.model import Factor, Plan
from nephoscope.reading.sentences import Place, did_you_mean
from nephoscope.reading.yamltext import Loc


def of_background(
    plan: Plan,
    name: str,
    factor: Factor,
    steps: Sequence[str],
    catalog: Catalog,
    loc: Loc,
    place: Place,
) -> BoundFactor:
    """The lever of one background: whether it runs, or one of its parameters."""
    known = {load.name: load for load in plan.backgrounds}
    load = known.get(steps[1])
    if load is None:
        raise PlanError(
            f"{place((*loc, 'path'))}there is no background '{steps[1]}'"
            f"{did_you_mean(steps[1], known)}.",
            f"The plan has: {', '.join(known) or 'none'}.",
        )
    if steps[2:] == ["active"]:
        levels = tuple(Level(value, value) for value in factor.levels)
        wrong = [one.value for one in levels if not isinstance(one.value, bool)]
        if wrong:
            raise PlanError(
                f"{place((*loc, 'levels'))}a background is active or not, not {wrong[0]!r}.",
                "Write levels: [false, true].",
            )
        return BoundFactor(name, "load active", levels, of=load.name, blocked=bool(factor.blocked))
    if len(steps) != 4 or steps[2] != "params" or not load.benchmark:
        raise PlanError(
            f"{place((*loc, 'path'))}'{factor.path}' is nothing a factor can set.",
            "Of a background that is backgrounds.NAME.active or backgrounds.NAME.params.PARAM.",
        )
    if steps[3] in load.params:
        raise PlanError(
            f"{place((*loc, 'path'))}the background '{load.name}' gives '{steps[3]}' itself.",
            "Keep it in one of the two.",
        )
    spec = spec_of(catalog, load.benchmark, ("backgrounds", list(known).index(load.name)), place)
    return BoundFactor(
        name,
        "load param",
        levels_of(spec, steps[3], factor, loc, place),
        key=steps[3],
        of=load.name,
        blocked=bool(factor.blocked),
        spec=spec,
    )


def of_each(
    plan: Plan,
    name: str,
    factor: Factor,
    steps: Sequence[str],
    catalog: Catalog,
    loc: Loc,
    place: Place,
) -> BoundFactor:
    """How every load runs that runs: on how many targets, or with which parameter."""
    if not any(load.benchmark for load in plan.backgrounds):
        raise PlanError(
            f"{place((*loc, 'path'))}the plan has no background that runs.",
            "Give it some, or vary another thing.",
        )
    blocked = bool(factor.blocked)
    if steps[2:] == ["count"]:
        return BoundFactor(name, "count", _counts(plan, factor, loc, place), blocked=blocked)
    if len(steps) != 4 or steps[2] != "params":
        raise PlanError(
            f"{place((*loc, 'path'))}'{factor.path}' is nothing a factor can set.",
            "Of every background that is backgrounds.*.count or backgrounds.*.params.PARAM.",
        )
    specs = [
        spec_of(catalog, load.benchmark, ("backgrounds", number), place)
        for number, load in enumerate(plan.backgrounds)
        if load.benchmark
    ]
    having = [spec for spec in specs if any(param.id == steps[3] for param in spec.params)]
    if not having:
        raise PlanError(
            f"{place((*loc, 'path'))}no background has a parameter '{steps[3]}'.",
            "Name a parameter of theirs; `nephoscope list ID` shows them.",
        )
    found = [levels_of(spec, steps[3], factor, loc, place) for spec in having]
    return BoundFactor(name, "each param", found[0], key=steps[3], blocked=blocked, spec=having[0])


def _counts(plan: Plan, factor: Factor, loc: Loc, place: Place) -> tuple[Level, ...]:
    """Levels of backgrounds.*.count: as many targets as every load has."""
    most = min(
        len(roles.targets_of(plan, load.on or (roles.AGGRESSOR,), ("backgrounds", at, "on"), place))
        for at, load in enumerate(plan.backgrounds)
        if load.benchmark
    )
    for position, raw in enumerate(factor.levels):
        if isinstance(raw, bool) or not isinstance(raw, int) or not 1 <= raw <= most:
            raise PlanError(
                f"{place((*loc, 'levels', position))}loads cannot run on {raw!r} targets: every "
                f"background has {most}.",
                f"Write numbers from 1 to {most}.",
            )
    return tuple(Level(raw, raw) for raw in factor.levels)


def which(plan: Plan, raw_levels: Sequence[Any], loc: Loc, place: Place) -> tuple[Level, ...]:
    """Levels of `backgrounds`: the names of those that run."""
    known = [load.name for load in plan.backgrounds]
    found = []
    for position, raw in enumerate(raw_levels):
        names = raw if isinstance(raw, list) else [] if raw == NONE else [raw]
        for name in names:
            if name not in known:
                raise PlanError(
                    f"{place((*loc, 'levels', position))}there is no background '{name}'"
                    f"{did_you_mean(str(name), [*known, NONE])}.",
                    f"The plan has: {', '.join(known) or 'none'}; '{NONE}' is none of them.",
                )
        ordered = tuple(name for name in known if name in names)
        found.append(Level("+".join(sorted(ordered)) or NONE, ordered))
    return tuple(found)
