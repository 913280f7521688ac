"""A plan against the catalogue and itself: what keeps it from running is said before it runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nephoscope.catalog import SIMULATION, BenchmarkSpec, Catalog
from nephoscope.errors import PlanError, UnknownName
from nephoscope.plans.model import Entry, Plan, Repeat, RepeatChange
from nephoscope.plans.parameters import checked_param, checked_params
from nephoscope.reading.sentences import Place, did_you_mean
from nephoscope.reading.yamltext import Loc

SCENARIO = "scenario"
"""The parameter of simulations that may stand in a plan as YAML."""


def nowhere(_: Loc) -> str:
    """The place of a plan that no file holds."""
    return ""


def checked(plan: Plan, catalog: Catalog, place: Place = nowhere) -> Plan:
    """The plan with every parameter in its own unit and type; PlanError for what cannot run."""
    _unique_targets(plan, place)
    entries = []
    for index, entry in enumerate(plan.benchmarks):
        loc: Loc = ("benchmarks", index)
        entries.append(_entry(entry, spec_of(catalog, entry.benchmark, loc, place), loc, place))
        _repeat(plan, index, place)
    _nest(plan, place)
    _money(plan, place)
    return plan.model_copy(update={"benchmarks": tuple(entries)})


def spec_of(catalog: Catalog, benchmark: str, loc: Loc, place: Place) -> BenchmarkSpec:
    """The declaration of the benchmark that the record at `loc` names."""
    try:
        return catalog.benchmark(benchmark)
    except UnknownName as error:
        raise PlanError(f"{place((*loc, 'benchmark'))}{error.message}", error.hint) from error


def _unique_targets(plan: Plan, place: Place) -> None:
    seen: set[str] = set()
    for index, target in enumerate(plan.targets):
        if target.name in seen:
            raise PlanError(
                f"{place(('targets', index, 'name'))}two targets are named '{target.name}'.",
                "Give each target its own name.",
            )
        seen.add(target.name)


def _repeat(plan: Plan, index: int, place: Place) -> None:
    try:
        plan.repeat_of(index)
    except ValueError as error:
        raise PlanError(
            f"{place(('benchmarks', index, 'repeat'))}repeat.max is less than repeat.min.",
            "Raise max, or lower min.",
        ) from error


def _nest(plan: Plan, place: Place) -> None:
    nest = plan.design.nest
    if nest is None:
        return
    loc: Loc = ("design", "nest")
    if plan.repeat != Repeat():
        raise PlanError(
            f"{place(('repeat',))}`design.nest` says how many rounds there are; `repeat` has no "
            "say.",
            "Keep one of the two.",
        )
    for index, entry in enumerate(plan.benchmarks):
        if entry.repeat != RepeatChange():
            raise PlanError(
                f"{place(('benchmarks', index, 'repeat'))}`design.nest` says how many rounds "
                "there are; `repeat` has no say.",
                "Keep one of the two.",
            )
    fixed = [target.name for target in plan.targets if not target.topology_host]
    if fixed and nest.instance * nest.boot > 1:
        raise PlanError(
            f"{place(loc)}only hosts of a lab are made anew or booted, and '{fixed[0]}' is none.",
            "Drop `instance` and `boot`, or measure lab hosts.",
        )
    if nest.total > 100_000:
        raise PlanError(
            f"{place(loc)}{nest.instance} instances x {nest.boot} boots x {nest.rounds} rounds are "
            f"{nest.total} rounds; more than 100000 are not run.",
            "Lower one of the three.",
        )


def _money(plan: Plan, place: Place) -> None:
    if plan.money is not None and not any(target.per_hour for target in plan.targets):
        raise PlanError(
            f"{place(('money',))}no target says what an hour of it costs, so the limit bounds "
            "nothing.",
            "Give the targets `per_hour`, or drop `money`.",
        )


def _scenario(
    spec: BenchmarkSpec, params: Mapping[str, Any], loc: Loc, place: Place
) -> Mapping[str, Any]:
    """A scenario that stands in the plan as it is: as the text that the simulator takes."""
    values = params.get(SCENARIO)
    if spec.kind != SIMULATION or not isinstance(values, Mapping):
        return params
    from nephoscope import scenarios

    text = scenarios.text_of(spec.id, values, lambda at: place((*loc, SCENARIO, *at)))
    return {**params, SCENARIO: text}


def _entry(entry: Entry, spec: BenchmarkSpec, loc: Loc, place: Place) -> Entry:
    for name in entry.headline:
        if name not in {metric.id for metric in spec.metrics}:
            known = [metric.id for metric in spec.metrics]
            raise PlanError(
                f"{place((*loc, 'headline'))}{spec.id} has no metric '{name}'"
                f"{did_you_mean(name, known)}.",
                f"It has: {', '.join(known)}.",
            )
    both = sorted(set(entry.params) & set(entry.factors))
    if both:
        raise PlanError(
            f"{place((*loc, 'factors', both[0]))}'{both[0]}' is both a fixed parameter and a "
            "factor.",
            "Keep it in one of the two.",
        )
    params = _scenario(spec, entry.params, (*loc, "params"), place)
    params = checked_params(spec, params, (*loc, "params"), place)
    factors = {}
    for name, levels in entry.factors.items():
        where = (*loc, "factors", name)
        factors[name] = [
            checked_param(spec, name, level, where, (*where, position), place)
            for position, level in enumerate(levels)
        ]
        if len({json.dumps(level) for level in factors[name]}) < len(levels):
            raise PlanError(
                f"{place(where)}the factor '{name}' has the same level twice.", "Remove one."
            )
    return entry.model_copy(update={"params": params, "factors": factors})
