"""Checks a plan against the catalogue and itself, before anything runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nephoscope import limits
from nephoscope.catalog import SIMULATION, BenchmarkSpec, Catalog
from nephoscope.plans.context import PlanContext, nowhere
from nephoscope.plans.model import Entry, Plan, Repeat, RepeatChange
from nephoscope.reading.sentences import Place, did_you_mean
from nephoscope.reading.yamltext import Loc

SCENARIO = "scenario"
"""The parameter of simulations that may stand in a plan as YAML."""


def checked(plan: Plan, catalog: Catalog, place: Place = nowhere) -> Plan:
    """Returns the plan with every parameter in its own unit; PlanError for what cannot run."""
    context = PlanContext(plan, catalog, place)
    _check_names(context)
    entries = []
    for index, entry in enumerate(plan.benchmarks):
        loc: Loc = ("benchmarks", index)
        entries.append(_entry(context, entry, context.spec(entry.benchmark, loc), loc))
        try:
            plan.repeat_of(index)
        except ValueError as error:
            message = "repeat.max is less than repeat.min."
            raise context.error((*loc, "repeat"), message, "Raise max, or lower min.") from error
    _check_nest(context)
    if plan.money is not None and not any(target.per_hour for target in plan.targets):
        raise context.error(
            ("money",),
            "no target says what an hour of it costs, so the limit bounds nothing.",
            "Give the targets `per_hour`, or drop `money`.",
        )
    return plan.model_copy(update={"benchmarks": tuple(entries)})


def _check_names(context: PlanContext) -> None:
    names: set[str] = set()
    for index, target in enumerate(context.plan.targets):
        if target.name in names:
            message = f"two targets are named '{target.name}'."
            raise context.error(
                ("targets", index, "name"), message, "Give each target its own name."
            )
        names.add(target.name)


def _check_nest(context: PlanContext) -> None:
    plan = context.plan
    nest = plan.design.nest
    if nest is None:
        return
    loc: Loc = ("design", "nest")
    repeats: list[tuple[Loc, bool]] = [(("repeat",), plan.repeat != Repeat())]
    repeats += [
        (("benchmarks", index, "repeat"), entry.repeat != RepeatChange())
        for index, entry in enumerate(plan.benchmarks)
    ]
    for at, is_given in repeats:
        if is_given:
            message = "`design.nest` sets the number of rounds, so `repeat` has no effect."
            raise context.error(at, message, "Keep one of the two.")
    fixed = [target.name for target in plan.targets if not target.topology_host]
    if fixed and nest.instance * nest.boot > 1:
        raise context.error(
            loc,
            f"only hosts of a lab are made anew or booted, and '{fixed[0]}' is none.",
            "Drop `instance` and `boot`, or measure lab hosts.",
        )
    if nest.total > limits.ROUNDS:
        raise context.error(
            loc,
            f"{nest.instance} instances x {nest.boot} boots x {nest.rounds} rounds are "
            f"{nest.total} rounds; more than {limits.ROUNDS} are not run.",
            "Lower one of the three.",
        )


def _entry(context: PlanContext, entry: Entry, spec: BenchmarkSpec, loc: Loc) -> Entry:
    known = [metric.id for metric in spec.metrics]
    for name in entry.headline:
        if name not in known:
            raise context.error(
                (*loc, "headline"),
                f"{spec.id} has no metric '{name}'{did_you_mean(name, known)}.",
                f"It has: {', '.join(known)}.",
            )
    for name in sorted(set(entry.params) & set(entry.factors)):
        message = f"'{name}' is both a fixed parameter and a factor."
        raise context.error((*loc, "factors", name), message, "Keep it in one of the two.")
    params = _scenario_as_text(context, spec, entry.params, (*loc, "params"))
    params = context.convert_all(spec, params, (*loc, "params"))
    factors = {}
    for name, levels in entry.factors.items():
        at: Loc = (*loc, "factors", name)
        factors[name] = [
            context.convert(spec, name, level, at, (*at, position))
            for position, level in enumerate(levels)
        ]
        if len({json.dumps(level) for level in factors[name]}) < len(levels):
            raise context.error(at, f"the factor '{name}' has the same level twice.", "Remove one.")
    return entry.model_copy(update={"params": params, "factors": factors})


def _scenario_as_text(
    context: PlanContext, spec: BenchmarkSpec, params: dict[str, Any], loc: Loc
) -> dict[str, Any]:
    """Returns the parameters with a scenario in the plan as the text that the simulator takes."""
    values = params.get(SCENARIO)
    if spec.kind != SIMULATION or not isinstance(values, Mapping):
        return params
    from nephoscope import scenarios

    text = scenarios.text_of(spec.id, values, lambda at: context.place((*loc, SCENARIO, *at)))
    return {**params, SCENARIO: text}
