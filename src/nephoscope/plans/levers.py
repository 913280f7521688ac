"""What a factor outside the benchmarks sets: its path and its levels, checked against the plan."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nephoscope.catalog import Catalog
from nephoscope.errors import PlanError, UnknownName, UsageError
from nephoscope.plans.model import Entry, Factor, Plan
from nephoscope.plans.parameters import checked_param
from nephoscope.reading.sentences import Place, did_you_mean
from nephoscope.reading.yamltext import Loc

if TYPE_CHECKING:
    from nephoscope.lab.topology import Topology

NONE = "none"
"""Level of `backgrounds` at which no load runs."""

RESERVED = ("arm", "benchmark", "hook", "load", "peer", "target", "together")
"""Names that results give to factors of their own."""

_DEAR = re.compile(r"hosts\.[^.]+\.(platform|memory|vcpus)")
"""Conditions for which a host is made anew."""


@dataclass(frozen=True, slots=True)
class Level:
    """One level: its name in results (a JSON scalar), and the value in the units it is set in."""

    label: Any
    value: Any


@dataclass(frozen=True, slots=True)
class Lever:
    """A factor and what it sets.

    sets: 'param' of the benchmark, 'lab' condition, 'load param' of a background, 'load active',
    or 'loads' (which of them run). key: the parameter, or the path into the topology. of: the
    background's name. entry: the only entry that it varies, None for all.
    """

    name: str
    sets: str
    levels: tuple[Level, ...]
    key: str = ""
    of: str = ""
    entry: int | None = None
    blocked: bool = False

    def level(self, raw: Any) -> Level | None:
        """The level of that name, or written as `raw`; None if there is none."""
        for level in self.levels:
            if same(level.label, raw) or same(level.value, raw):
                return level
        return None


def same(one: Any, other: Any) -> bool:
    """Whether two values say the same in JSON: 1 and true do not."""
    return json.dumps(one, default=str) == json.dumps(other, default=str)


def scalar(value: Any) -> Any:
    """A JSON scalar: a list becomes its canonical text, since a factor's level is one thing."""
    return json.dumps(value, separators=(",", ":")) if isinstance(value, list | dict) else value


def of_entry(entry: Entry, number: int) -> list[Lever]:
    """The levers of an entry's own factors; its values are checked already."""
    return [
        Lever(
            name,
            "param",
            tuple(Level(scalar(value), value) for value in values),
            key=name,
            entry=number,
        )
        for name, values in entry.factors.items()
    ]


def of_plan(
    plan: Plan, catalog: Catalog, topology: Topology | None, place: Place
) -> tuple[Lever, ...]:
    """The levers of the plan's own factors. PlanError for what cannot be set."""
    levers = []
    taken: dict[str, str] = {}
    for name, factor in plan.factors.items():
        loc: Loc = ("factors", name)
        if name in RESERVED:
            raise PlanError(
                f"{place(loc)}a factor cannot be named '{name}': results use that name.",
                "Name it otherwise.",
            )
        if factor.path in taken:
            raise PlanError(
                f"{place((*loc, 'path'))}'{name}' and '{taken[factor.path]}' set the same thing.",
                "Keep one of them.",
            )
        taken[factor.path] = name
        lever = _lever(plan, name, factor, catalog, topology, place)
        _distinct(lever, loc, place)
        levers.append(lever)
    return tuple(levers)


def _distinct(lever: Lever, loc: Loc, place: Place) -> None:
    for known in ("label", "value"):
        texts = [json.dumps(getattr(level, known), default=str) for level in lever.levels]
        if len(set(texts)) < len(texts):
            raise PlanError(
                f"{place((*loc, 'levels'))}the factor '{lever.name}' has the same level twice.",
                "Remove one.",
            )


def _lever(
    plan: Plan,
    name: str,
    factor: Factor,
    catalog: Catalog,
    topology: Topology | None,
    place: Place,
) -> Lever:
    loc: Loc = ("factors", name)
    steps = factor.path.split(".")
    if steps[0] == "lab" and len(steps) > 1:
        return _of_lab(name, factor, topology, loc, place)
    if factor.path == "backgrounds":
        return Lever(name, "loads", _which(plan, factor.levels, loc, place))
    if steps[0] == "backgrounds" and len(steps) in (3, 4):
        return _of_background(plan, name, factor, steps, catalog, loc, place)
    if steps[0] == "benchmarks" and len(steps) == 4 and steps[2] == "params":
        return _of_benchmark(plan, name, factor, steps, catalog, loc, place)
    hint = "It may be lab.…, backgrounds, backgrounds.NAME.active, backgrounds.NAME.params.PARAM "
    hint += "or benchmarks.N.params.PARAM."
    if steps[0] == "targets":
        hint = "Each target is an alternative of its own already; vary its host: lab.hosts.NAME.…"
    raise PlanError(f"{place((*loc, 'path'))}'{factor.path}' is nothing a factor can set.", hint)


def _of_lab(
    name: str, factor: Factor, topology: Topology | None, loc: Loc, place: Place
) -> Lever:
    if topology is None:
        raise PlanError(
            f"{place((*loc, 'path'))}'{factor.path}' is a condition of a lab, and the plan has none.",
            "Give it one with `lab: topology.yaml`.",
        )
    from nephoscope.lab import conditions

    path = factor.path.removeprefix("lab.")
    levels = []
    for position, raw in enumerate(factor.levels):
        try:
            value = conditions.check_path(topology, path, raw)
        except UnknownName as error:
            raise PlanError(f"{place((*loc, 'path'))}{error.message}", error.hint) from error
        except UsageError as error:
            at = place((*loc, "levels", position))
            raise PlanError(f"{at}{error.message}", error.hint) from error
        levels.append(Level(scalar(raw), value))
    dear = _DEAR.fullmatch(path) is not None if factor.blocked is None else factor.blocked
    return Lever(name, "lab", tuple(levels), key=path, blocked=dear)


def _of_benchmark(
    plan: Plan,
    name: str,
    factor: Factor,
    steps: Sequence[str],
    catalog: Catalog,
    loc: Loc,
    place: Place,
) -> Lever:
    number, param = steps[1], steps[3]
    if not (number.isdecimal() and int(number) < len(plan.benchmarks)):
        raise PlanError(
            f"{place((*loc, 'path'))}'{number}' is no position among {len(plan.benchmarks)} "
            "benchmarks.",
            "Positions count from 0: benchmarks.0.params.threads.",
        )
    entry = plan.benchmarks[int(number)]
    if param in entry.params or param in entry.factors:
        raise PlanError(
            f"{place((*loc, 'path'))}benchmarks.{number} gives '{param}' itself.",
            "Keep it in one of the two.",
        )
    if name in entry.factors:
        raise PlanError(
            f"{place(loc)}benchmarks.{number} has a factor '{name}' of its own.", "Rename one."
        )
    levels = _levels(catalog, entry.benchmark, param, factor, loc, place)
    return Lever(
        name, "param", levels, key=param, entry=int(number), blocked=bool(factor.blocked)
    )


def _levels(
    catalog: Catalog, benchmark: str, param: str, factor: Factor, loc: Loc, place: Place
) -> tuple[Level, ...]:
    """The levels of a parameter in its own unit."""
    spec = catalog.benchmark(benchmark)
    found = []
    for position, raw in enumerate(factor.levels):
        where = {"name": (*loc, "path"), "value": (*loc, "levels", position)}
        value = checked_param(spec, param, raw, where["name"], where["value"], place)
        found.append(Level(scalar(value), value))
    return tuple(found)


def _of_background(
    plan: Plan,
    name: str,
    factor: Factor,
    steps: Sequence[str],
    catalog: Catalog,
    loc: Loc,
    place: Place,
) -> Lever:
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
        return Lever(name, "load active", levels, of=load.name, blocked=bool(factor.blocked))
    if len(steps) != 4 or steps[2] != "params":
        raise PlanError(
            f"{place((*loc, 'path'))}'{factor.path}' is nothing a factor can set.",
            "Of a background that is backgrounds.NAME.active or backgrounds.NAME.params.PARAM.",
        )
    if steps[3] in load.params:
        raise PlanError(
            f"{place((*loc, 'path'))}the background '{load.name}' gives '{steps[3]}' itself.",
            "Keep it in one of the two.",
        )
    values = _levels(catalog, load.benchmark, steps[3], factor, loc, place)
    return Lever(
        name, "load param", values, key=steps[3], of=load.name, blocked=bool(factor.blocked)
    )


def _which(
    plan: Plan, raw_levels: Sequence[Any], loc: Loc, place: Place
) -> tuple[Level, ...]:
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
        found.append(Level("+".join(ordered) or NONE, ordered))
    return tuple(found)
