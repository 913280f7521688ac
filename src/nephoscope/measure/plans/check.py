"""Checks a plan against the catalogue and itself, before anything runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice, product
from typing import Any

from pydantic import ValidationError

from nephoscope.catalog import ADAPTER, SIMULATION, BenchmarkSpec, Catalog
from nephoscope.core import limits
from nephoscope.core.errors import UsageError
from nephoscope.core.reading.sentences import Place, did_you_mean
from nephoscope.core.reading.validation_errors import ValidationErrors
from nephoscope.core.reading.yamltext import Loc
from nephoscope.measure.plans.context import PlanContext, nowhere
from nephoscope.measure.plans.model import Entry, Plan, Repeat, RepeatChange
from nephoscope.measure.targets.kinds.rented import RentedRecord

_SETTINGS_CHECKED = 1000
"""Of one benchmark; those beyond are refused when they are measured."""
SCENARIO = "scenario"
"""The parameter of simulations that may stand in a plan as YAML."""


def checked(plan: Plan, catalog: Catalog, place: Place = nowhere) -> Plan:
    """Returns the plan with every parameter in its own unit; PlanError for what cannot run."""
    context = PlanContext(plan, catalog, place)
    errors = ValidationErrors()
    with errors.of_part():
        _check_names(context)
    entries = []
    for index, entry in enumerate(plan.benchmarks):
        loc: Loc = ("benchmarks", index)
        with errors.of_part():
            entries.append(_entry(context, entry, context.spec(entry.benchmark, loc), loc))
        with errors.of_part():
            _check_repeat(context, index)
    with errors.of_part():
        _check_concurrency(context)
    with errors.of_part():
        _check_collectors(context)
    with errors.of_part():
        _check_nest(context)
    with errors.of_part():
        _check_money(context)
    with errors.of_part():
        _check_until(context)
    errors.report()
    return plan.model_copy(update={"benchmarks": tuple(entries)})


def check_readable_entries(
    errors: ValidationErrors, values: Mapping[str, Any], catalog: Catalog, place: Place
) -> None:
    """Adds the errors of those benchmarks of a plan that can be read though the plan cannot."""
    listed = values.get("benchmarks")
    for index, content in enumerate(listed if isinstance(listed, list) else ()):
        try:
            entry = Entry.model_validate(content)
        except ValidationError:
            continue
        loc: Loc = ("benchmarks", index)
        context = PlanContext(Plan(name="unread", benchmarks=(entry,)), catalog, place)
        with errors.of_part():
            _entry(context, entry, context.spec(entry.benchmark, loc), loc)


def _check_repeat(context: PlanContext, index: int) -> None:
    try:
        context.plan.repeat_of(index)
    except ValueError as error:
        loc: Loc = ("benchmarks", index, "repeat")
        message = "repeat.max is less than repeat.min."
        raise context.error(loc, message, "Raise max, or lower min.") from error


def _check_money(context: PlanContext) -> None:
    plan = context.plan
    if plan.money is None:
        return
    if any(isinstance(target, RentedRecord) for target in plan.targets):
        return  # their cloud says what they cost, before they are rented
    unpriced = [target.name for target in plan.targets if not target.is_priced]
    if unpriced and len(unpriced) < len(plan.targets):
        raise context.error(
            ("money",),
            f"no `per_hour` for {', '.join(unpriced)}, so the money spent would not be known.",
            "Give each target `per_hour`, 0 for what is free; or drop `money`.",
        )
    if not any(target.costs for target in plan.targets):
        raise context.error(
            ("money",),
            "no target says what an hour of it costs, so the limit bounds nothing.",
            "Give the targets `per_hour`, or drop `money`.",
        )


def _check_until(context: PlanContext) -> None:
    plan = context.plan
    if plan.repeat.until != "decided":
        return
    loc: Loc = ("repeat", "until")
    if not plan.design.baseline and len(plan.targets) != 2:
        raise context.error(
            loc,
            "`decided` needs something to decide: the plan has neither a baseline nor two targets.",
            "Name `design: {baseline: {FACTOR: LEVEL}}`, or drop `until`.",
        )
    if plan.design.around:
        raise context.error(
            loc,
            "`decided` cannot end trials that have baseline trials around them.",
            "Drop `design.around`, or drop `until`.",
        )


def _check_names(context: PlanContext) -> None:
    earlier: set[str] = set()
    for index, target in enumerate(context.plan.targets):
        if target.name in earlier:
            message = f"two targets are named '{target.name}'."
            hint = "Give each target its own name."
            raise context.error(("targets", index, "name"), message, hint)
        earlier.add(target.name)


def _check_concurrency(context: PlanContext) -> None:
    plan = context.plan
    if plan.max_concurrent is not None and not plan.concurrent:
        raise context.error(
            ("max_concurrent",),
            "trials run one after the other, so that `max_concurrent` has no effect.",
            "Add `concurrent: true`, or drop it.",
        )


def _check_collectors(context: PlanContext) -> None:
    targets = {target.name: target for target in context.plan.targets}
    for index, target in enumerate(context.plan.targets):
        name = target.collected_by
        if not name:
            continue
        loc: Loc = ("targets", index, "via")
        collector = targets.get(name)
        if collector is None:
            message = f"there is no target '{name}'{did_you_mean(name, targets)}."
            raise context.error(loc, message, "Name an ssh target of this plan.")
        if collector.kind != target.kind or collector.collected_by or name == target.name:
            raise context.error(
                loc,
                f"'{name}' cannot collect for '{target.name}': a collector is another ssh target "
                "that the controller itself reaches.",
                "Name one without `via`.",
            )


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
    fixed = [target.name for target in plan.targets if not target.boots_as]
    if fixed and nest.boots > 1:
        raise context.error(
            loc,
            f"only hosts of a lab are recreated or booted, and '{fixed[0]}' is none.",
            "Drop `instance` and `boot`, or measure lab hosts; rented machines are recreated.",
        )
    if nest.total > limits.ROUNDS:
        raise context.error(
            loc,
            f"{nest.instance} instances x {nest.boot} boots x {nest.rounds} rounds are "
            f"{nest.total} rounds; more than {limits.ROUNDS} are not run.",
            "Lower one of the three.",
        )


def _entry(context: PlanContext, entry: Entry, spec: BenchmarkSpec, loc: Loc) -> Entry:
    errors = ValidationErrors()
    known = [metric.id for metric in spec.metrics]
    for name in entry.headline:
        if name not in known:
            with errors.of_part():
                raise context.error(
                    (*loc, "headline"),
                    f"{spec.id} has no metric '{name}'{did_you_mean(name, known)}.",
                    f"It has: {', '.join(known)}.",
                )
    for name in sorted(set(entry.params) & set(entry.factors)):
        with errors.of_part():
            message = f"'{name}' is both a fixed parameter and a factor."
            raise context.error((*loc, "factors", name), message, "Keep it in one of the two.")
    params: dict[str, Any] = {}
    with errors.of_part():
        params = _scenario_as_text(context, spec, entry.params, (*loc, "params"))
        params = context.convert_all(spec, params, (*loc, "params"))
    factors = {}
    for name, levels in entry.factors.items():
        with errors.of_part():
            factors[name] = _levels(context, spec, name, levels, (*loc, "factors", name))
    errors.report()
    with errors.of_part():
        _check_command(context, spec, params, factors, (*loc, "factors" if factors else "params"))
    errors.report()
    return entry.model_copy(update={"params": params, "factors": factors})


def _check_command(
    context: PlanContext,
    spec: BenchmarkSpec,
    params: Mapping[str, Any],
    factors: Mapping[str, Sequence[Any]],
    loc: Loc,
) -> None:
    """Refuses what a third-party tool cannot be asked, before the first trial asks it."""
    if spec.kind != ADAPTER:
        return
    from nephoscope.catalog.adapters import ADAPTERS

    for levels in islice(product(*factors.values()), _SETTINGS_CHECKED):
        try:
            ADAPTERS[spec.id].build_command({**params, **dict(zip(factors, levels, strict=True))})
        except UsageError as error:
            raise context.error(loc, error.message, error.hint) from error


def _levels(
    context: PlanContext, spec: BenchmarkSpec, name: str, levels: Sequence[Any], at: Loc
) -> list[Any]:
    """Returns the levels of a factor, each in the parameter's unit."""
    converted = [
        context.convert(spec, name, level, at, (*at, position))
        for position, level in enumerate(levels)
    ]
    if len({json.dumps(level) for level in converted}) < len(levels):
        raise context.error(at, f"the factor '{name}' has the same level twice.", "Remove one.")
    return converted


def _scenario_as_text(
    context: PlanContext, spec: BenchmarkSpec, params: dict[str, Any], loc: Loc
) -> dict[str, Any]:
    """Returns the parameters with a scenario in the plan as the text that the simulator takes."""
    values = params.get(SCENARIO)
    if spec.kind != SIMULATION or not isinstance(values, Mapping):
        return params
    from nephoscope.catalog import scenarios

    text = scenarios.text_of(spec.id, values, lambda at: context.place((*loc, SCENARIO, *at)))
    return {**params, SCENARIO: text}
