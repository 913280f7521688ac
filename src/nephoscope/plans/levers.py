"""What a factor outside the benchmarks sets: its path and its levels, checked against the plan."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nephoscope.catalog import BenchmarkSpec, Catalog
from nephoscope.errors import PlanError, UsageError
from nephoscope.plans import roles
from nephoscope.plans.check import spec_of
from nephoscope.plans.model import Entry, Factor, Plan
from nephoscope.plans.parameters import checked_param, checked_value
from nephoscope.reading.sentences import Place, did_you_mean
from nephoscope.reading.yamltext import Loc

if TYPE_CHECKING:
    from nephoscope.lab.topology import Topology

EACH = "*"
"""In a path, instead of a background's name: every load that runs."""

NONE = "none"
"""Level of `backgrounds` at which no load runs."""

RESERVED = ("arm", "benchmark", "hook", "load", "peer", "target", "together")
"""Names that results give to factors of their own."""

_DEAR = re.compile(r"hosts\.[^.]+\.(platform|memory|vcpus)")
"""Conditions for which a host is made anew."""


_TRIED = 256
"""Combinations of other conditions that are tried to find one in which a level is possible."""


@dataclass(frozen=True, slots=True)
class Level:
    """One level: its name in results (a JSON scalar), and the value in the units it is set in."""

    label: Any
    value: Any


@dataclass(frozen=True, slots=True)
class Lever:
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


def of_entry(entry: Entry, number: int, spec: BenchmarkSpec) -> list[Lever]:
    """The levers of an entry's own factors; its values are checked already."""
    return [
        Lever(
            name,
            "param",
            tuple(Level(scalar(value), value) for value in values),
            key=name,
            entry=number,
            spec=spec,
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
        return _of_lab(plan, name, factor, topology, loc, place)
    if factor.path == "backgrounds":
        return Lever(name, "loads", _which(plan, factor.levels, loc, place))
    if steps[:2] == ["backgrounds", EACH]:
        return _of_each(plan, name, factor, steps, catalog, loc, place)
    if steps[0] == "backgrounds" and len(steps) in (3, 4):
        return _of_background(plan, name, factor, steps, catalog, loc, place)
    if steps[0] == "benchmarks" and len(steps) == 4 and steps[2] == "params":
        return _of_benchmark(plan, name, factor, steps, catalog, loc, place)
    hint = "It may be lab.…, backgrounds, backgrounds.NAME.active, backgrounds.NAME.params.PARAM, "
    hint += "backgrounds.*.params.PARAM, backgrounds.*.count or benchmarks.N.params.PARAM."
    if steps[0] == "targets":
        hint = "Each target is an alternative of its own already; vary its host: lab.hosts.NAME.…"
    raise PlanError(f"{place((*loc, 'path'))}'{factor.path}' is nothing a factor can set.", hint)


def _of_lab(
    plan: Plan, name: str, factor: Factor, topology: Topology | None, loc: Loc, place: Place
) -> Lever:
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
    return Lever(name, "lab", tuple(levels), key=path, blocked=dear)


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
    spec = catalog.benchmark(entry.benchmark)
    return Lever(
        name,
        "param",
        _levels(spec, param, factor, loc, place),
        key=param,
        entry=int(number),
        blocked=bool(factor.blocked),
        spec=spec,
    )


def _levels(
    spec: BenchmarkSpec, param: str, factor: Factor, loc: Loc, place: Place
) -> tuple[Level, ...]:
    """The levels of a parameter in its own unit."""
    found = []
    for position, raw in enumerate(factor.levels):
        given: Loc = (*loc, "levels", position)
        value = checked_param(spec, param, raw, (*loc, "path"), given, place)
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
    return Lever(
        name,
        "load param",
        _levels(spec, steps[3], factor, loc, place),
        key=steps[3],
        of=load.name,
        blocked=bool(factor.blocked),
        spec=spec,
    )


def _of_each(
    plan: Plan,
    name: str,
    factor: Factor,
    steps: Sequence[str],
    catalog: Catalog,
    loc: Loc,
    place: Place,
) -> Lever:
    """How every load runs that runs: on how many targets, or with which parameter."""
    if not any(load.benchmark for load in plan.backgrounds):
        raise PlanError(
            f"{place((*loc, 'path'))}the plan has no background that runs.",
            "Give it some, or vary another thing.",
        )
    blocked = bool(factor.blocked)
    if steps[2:] == ["count"]:
        return Lever(name, "count", _counts(plan, factor, loc, place), blocked=blocked)
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
    found = [_levels(spec, steps[3], factor, loc, place) for spec in having]
    return Lever(name, "each param", found[0], key=steps[3], blocked=blocked, spec=having[0])


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


def _which(plan: Plan, raw_levels: Sequence[Any], loc: Loc, place: Place) -> tuple[Level, ...]:
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
