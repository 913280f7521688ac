"""What a factor outside the benchmarks sets: its path and its levels, checked against the plan."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nephoscope.catalog import BenchmarkSpec, Catalog
from nephoscope.errors import PlanError
from nephoscope.plans.factors.bound import EACH, BoundFactor, Level, levels_of, scalar
from nephoscope.plans.factors.lab import of_lab
from nephoscope.plans.factors.loads import of_background, of_each, which
from nephoscope.plans.model import Entry, Factor, Plan
from nephoscope.reading.sentences import Place
from nephoscope.reading.yamltext import Loc

if TYPE_CHECKING:
    from nephoscope.lab.topology import Topology

RESERVED = ("arm", "benchmark", "hook", "load", "peer", "target", "together")
"""Names that results give to factors of their own."""


def of_entry(entry: Entry, number: int, spec: BenchmarkSpec) -> list[BoundFactor]:
    """The levers of an entry's own factors; its values are checked already."""
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


def of_plan(
    plan: Plan, catalog: Catalog, topology: Topology | None, place: Place
) -> tuple[BoundFactor, ...]:
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


def _distinct(lever: BoundFactor, loc: Loc, place: Place) -> None:
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
) -> BoundFactor:
    loc: Loc = ("factors", name)
    steps = factor.path.split(".")
    if steps[0] == "lab" and len(steps) > 1:
        return of_lab(plan, name, factor, topology, loc, place)
    if factor.path == "backgrounds":
        return BoundFactor(name, "loads", which(plan, factor.levels, loc, place))
    if steps[:2] == ["backgrounds", EACH]:
        return of_each(plan, name, factor, steps, catalog, loc, place)
    if steps[0] == "backgrounds" and len(steps) in (3, 4):
        return of_background(plan, name, factor, steps, catalog, loc, place)
    if steps[0] == "benchmarks" and len(steps) == 4 and steps[2] == "params":
        return _of_benchmark(plan, name, factor, steps, catalog, loc, place)
    hint = "It may be lab.…, backgrounds, backgrounds.NAME.active, backgrounds.NAME.params.PARAM, "
    hint += "backgrounds.*.params.PARAM, backgrounds.*.count or benchmarks.N.params.PARAM."
    if steps[0] == "targets":
        hint = "Each target is an alternative of its own already; vary its host: lab.hosts.NAME.…"
    raise PlanError(f"{place((*loc, 'path'))}'{factor.path}' is nothing a factor can set.", hint)


def _of_benchmark(
    plan: Plan,
    name: str,
    factor: Factor,
    steps: Sequence[str],
    catalog: Catalog,
    loc: Loc,
    place: Place,
) -> BoundFactor:
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
    return BoundFactor(
        name,
        "param",
        levels_of(spec, param, factor, loc, place),
        key=param,
        entry=int(number),
        blocked=bool(factor.blocked),
        spec=spec,
    )
