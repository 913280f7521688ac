"""Expands a plan into its settings: the crossing of its factors, or a part, in a fixed order."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from nephoscope.catalog import Catalog
from nephoscope.core import limits
from nephoscope.core.errors import PlanError, UsageError
from nephoscope.core.model import Background, Setting
from nephoscope.core.reading.sentences import Place
from nephoscope.core.reading.validation_errors import ValidationErrors
from nephoscope.core.reading.yamltext import Loc
from nephoscope.core.records import dataclass
from nephoscope.measure.plans.check import checked
from nephoscope.measure.plans.context import PlanContext, nowhere
from nephoscope.measure.plans.design import baselines, crossing, order
from nephoscope.measure.plans.design.crossing import Crossing
from nephoscope.measure.plans.factors.bound import BoundFactor, Level, scalar
from nephoscope.measure.plans.factors.lab import apply_conditions
from nephoscope.measure.plans.factors.of_plan import bind_entry_factors, bind_plan_factors
from nephoscope.measure.plans.model import Entry, Plan
from nephoscope.measure.plans.participants import Participants, resolve_participants
from nephoscope.measure.plans.service_use import use_of

ARMS = ("a", "b")

LABEL = "label"
"""A parameter that names the settings of a benchmark in results."""


@dataclass(slots=True)
class _LevelRow:
    """One combination of levels of one entry, on its way to a setting."""

    number: int
    entry: Entry
    on: tuple[str, ...]
    peer: str
    client: str
    params: dict[str, Any]
    labels: dict[str, Any] = field(default_factory=dict)
    conditions: dict[str, Any] = field(default_factory=dict)
    backgrounds: tuple[Background, ...] = ()
    block: str = ""
    varied: frozenset[str] = frozenset()
    """Parameters that a factor of the entry sets."""
    load_factors: dict[str, tuple[BoundFactor, Any]] = field(default_factory=dict)
    """Factor -> level for every load that runs; empty where none does."""
    arm: str = ""


def check_all(plan: Plan, catalog: Catalog, place: Place) -> Plan:
    """Returns the plan as `checked` does. PlanError for all errors that hide no other."""
    errors = ValidationErrors()
    with errors.of_part():
        plan = checked(plan, catalog, place)
    context = PlanContext(plan, catalog, place)
    with errors.of_part():
        resolve_participants(context)
    with errors.of_part():
        bind_plan_factors(context)
    errors.report()
    use_of(plan, expand(plan, catalog, place), catalog.benchmark, place)
    return plan


def expand(plan: Plan, catalog: Catalog, place: Place = nowhere) -> list[Setting]:
    """Returns every setting of the plan; `index` is its position in the list.

    Entries keep the plan's order; of the factors (an entry's own, then the plan's) the last one
    varies fastest. Where several entries run one benchmark, whatever they differ in (a parameter,
    the peer, the client, whether targets run together) is a factor too: results of different
    settings must not be taken for repetitions of one another.
    Raises PlanError when two settings are the same, when there are more than `limits` allows, and
    for whatever `checked` and `resolve_participants` refuse.
    """
    return _expanded(plan, catalog, place)[0]


def crossings(plan: Plan, catalog: Catalog) -> list[Crossing]:
    """Returns how the factors of each entry are combined."""
    return _expanded(plan, catalog, nowhere)[1]


def _expanded(plan: Plan, catalog: Catalog, place: Place) -> tuple[list[Setting], list[Crossing]]:
    plan = checked(plan, catalog, place)
    context = PlanContext(plan, catalog, place)
    parts = resolve_participants(context)
    shared = bind_plan_factors(context)
    by_entry = [
        [
            *bind_entry_factors(entry, number, catalog.benchmark(entry.benchmark)),
            *(factor for factor in shared if factor.entry in (None, number)),
        ]
        for number, entry in enumerate(plan.benchmarks)
    ]
    every_factor = [factor for factors in by_entry for factor in factors]
    crossing.check_exclusions(context, every_factor)
    total = sum(_size(plan, factors) for factors in by_entry)
    if total > (limits.SETTINGS if not plan.design.exclude else limits.CROSSED_SETTINGS):
        raise _too_many(context, total)
    rows: list[_LevelRow] = []
    entry_crossings: list[Crossing] = []
    for number, factors in enumerate(by_entry):
        entry_crossing, combinations = crossing.combinations(context, number, factors)
        entry_crossings.append(entry_crossing)
        entry_rows = [_row(context, parts, number, factors, levels) for levels in combinations]
        varies_loads = any(factor.describes_loads for factor in factors)
        rows += _distinct(entry_rows) if varies_loads else entry_rows
    if plan.design.a_a:
        rows = [replace(row, arm=arm) for row in rows for arm in ARMS]
    if len(rows) > limits.SETTINGS:
        raise _too_many(context, len(rows))
    if not rows:
        message = "every combination is excluded."
        raise context.error(("design", "exclude"), message, "Exclude fewer.")
    _check_conditions(context, rows)
    order.check(context)
    settings = _settings(context, parts, rows)
    alternatives = sum(len(setting.targets) for setting in settings)
    if alternatives > limits.ALTERNATIVES:
        message = f"the plan has {alternatives} settings on targets; {limits.ALTERNATIVES} are run."
        raise context.error(("targets",), message, "Split it, or measure fewer targets.")
    return _with_baselines(context, settings, by_entry), entry_crossings


def _size(plan: Plan, factors: Sequence[BoundFactor]) -> int:
    whole = math.prod(len(factor.levels) for factor in factors)
    arms = len(ARMS) if plan.design.a_a else 1
    return arms * max(1, whole // crossing.divisor(plan))


def _too_many(context: PlanContext, total: int) -> PlanError:
    return context.error(
        ("design",),
        f"The plan has {total} settings; more than {limits.SETTINGS} are not run.",
        "Split it, vary fewer factors, or run a part of them: design.fraction.",
    )


def _row(
    context: PlanContext,
    parts: Participants,
    number: int,
    factors: Sequence[BoundFactor],
    levels: Sequence[Level],
) -> _LevelRow:
    entry = context.plan.benchmarks[number]
    ends = parts.ends[number]
    row = _LevelRow(number, entry, ends.on, ends.peer, ends.client, dict(entry.params))
    active = [load.name for load in context.plan.backgrounds]
    load_params: dict[str, dict[str, Any]] = {load.name: {} for load in parts.backgrounds}
    varied, blocks = set(), []
    for factor, level in zip(factors, levels, strict=True):
        row.labels[factor.name] = level.label
        if factor.blocked:
            blocks.append(f"{factor.name}={level.label}")
        if factor.sets == "param":
            row.params[factor.key] = level.value
            varied.add(factor.key)
        elif factor.sets == "lab":
            row.conditions[factor.key] = level.value
        elif factor.sets == "load param":
            load_params[factor.background][factor.key] = level.value
        elif factor.describes_loads:
            row.load_factors[factor.name] = (factor, level.value)
        elif factor.sets == "load active":
            active = [name for name in active if level.value or name != factor.background]
        else:
            active = [name for name in active if name in level.value]
    row.backgrounds = tuple(
        _vary_load(replace(load, params={**load.params, **load_params[load.name]}), row, context)
        for load in parts.backgrounds
        if load.name in active
    )
    for name in active:
        row.conditions |= parts.treatments.get(name, {})
    if not row.backgrounds:
        row.labels |= {
            name: factor.level_without_load for name, (factor, _) in row.load_factors.items()
        }
        row.load_factors = {}
    row.varied, row.block = frozenset(varied), ",".join(blocks)
    return row


def _vary_load(load: Background, row: _LevelRow, context: PlanContext) -> Background:
    """Returns the load with the row's levels for every load; its own parameters stay."""
    known = {param.id for param in context.catalog.benchmark(load.benchmark).params}
    params, targets = dict(load.params), load.targets
    for factor, value in row.load_factors.values():
        if factor.sets == "count":
            targets = targets[:value]
        elif factor.key in known:
            params.setdefault(factor.key, value)
    return replace(load, params=params, targets=targets)


def _distinct(rows: Sequence[_LevelRow]) -> list[_LevelRow]:
    """Without a load it does not matter how loads run: of such rows one stays."""
    distinct: dict[str, _LevelRow] = {}
    for row in rows:
        distinct.setdefault(json.dumps([row.number, row.labels], sort_keys=True), row)
    return list(distinct.values())


def _check_conditions(context: PlanContext, rows: Sequence[_LevelRow]) -> None:
    """Levels that are possible one by one may not be so together: a jitter beyond its delay."""
    if context.topology is None:
        return
    checked_keys: set[str] = set()
    for row in rows:
        for conditions in _by_object(row.conditions):
            key = json.dumps(conditions, sort_keys=True)
            if key in checked_keys:
                continue
            checked_keys.add(key)
            try:
                apply_conditions(context.topology, conditions)
            except UsageError as error:
                names = ", ".join(f"{name}={label}" for name, label in row.labels.items())
                raise context.error(
                    ("factors",),
                    f"the combination {names} cannot be built: {error.message}",
                    "Leave it out with design.exclude.",
                ) from error


def _by_object(conditions: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Several conditions of one link, one host or all sites; those of two are independent."""
    groups: dict[str, dict[str, Any]] = {}
    for path, value in conditions.items():
        kind, _, rest = path.partition(".")
        name = kind if kind == "geo" else f"{kind}.{rest.partition('.')[0]}"
        groups.setdefault(name, {})[path] = value
    return [group for group in groups.values() if len(group) > 1]


def _settings(
    context: PlanContext, parts: Participants, rows: Sequence[_LevelRow]
) -> list[Setting]:
    differing = _differing(rows, context.catalog)
    settings = []
    known: dict[str, _LevelRow] = {}
    for index, row in enumerate(rows):
        content = _content(row, context.catalog)
        for target in row.on:
            # How a load is asked to run tells settings apart, even where the load ignores it:
            # one that does nothing is an A/A control of every level.
            load_levels = {name: value for name, (_, value) in row.load_factors.items()}
            key = json.dumps(
                [row.entry.benchmark, target, content, row.arm, load_levels], sort_keys=True
            )
            if key in known:
                raise _repeated(context, row, known[key])
            known[key] = row
        further = {
            name: scalar(content[name])
            for name in sorted(differing[row.entry.benchmark])
            if name not in row.labels and name not in row.varied
        }
        arm = {"arm": row.arm} if row.arm else {}
        settings.append(
            Setting(
                index=index,
                benchmark=row.entry.benchmark,
                params=row.params,
                factors={**row.labels, **further, **arm},
                timeout_s=row.entry.timeout_s,
                headline=row.entry.headline,
                entry=row.number,
                targets=row.on,
                together=row.entry.together,
                served_by=row.entry.served_by,
                peer=row.peer,
                client=row.client,
                conditions=row.conditions,
                backgrounds=row.backgrounds,
                before=parts.before,
                after=parts.after,
                arm=row.arm,
                block=row.block,
            )
        )
    return settings


def _repeated(context: PlanContext, row: _LevelRow, earlier: _LevelRow) -> PlanError:
    if row.number != earlier.number:
        return context.error(
            ("benchmarks", row.number),
            f"benchmarks.{row.number} repeats a setting of {row.entry.benchmark} that "
            f"benchmarks.{earlier.number} has already.",
            "Remove one; repetition is what `repeat` is for.",
        )
    names = [name for name in row.labels if row.labels[name] != earlier.labels[name]]
    first, second = (
        ", ".join(f"{name}={each.labels[name]}" for name in names) for each in (earlier, row)
    )
    return context.error(
        ("factors",),
        f"the combinations with {first} and with {second} are the same experiment: the levels "
        "belong to a background that does not run.",
        "Leave one out with design.exclude.",
    )


def _content(row: _LevelRow, catalog: Catalog) -> dict[str, Any]:
    """Returns a setting's content by name: parameters with defaults, and how it is run."""
    params = {
        param.id: row.params.get(param.id, param.default)
        for param in catalog.benchmark(row.entry.benchmark).params
    }
    together = "+".join(row.on) if row.entry.together else "alone"
    loads = [[load.name, dict(load.params)] for load in row.backgrounds]
    return {
        **params,
        "peer": row.peer,
        "client": row.client,
        "together": together,
        "conditions": row.conditions,
        "backgrounds": loads,
    }


def _differing(rows: Sequence[_LevelRow], catalog: Catalog) -> dict[str, set[str]]:
    """Returns, by benchmark, what differs between its settings besides the plan's factors.

    Where each setting has a label of its own, the label alone tells them apart.
    """
    values: dict[str, dict[str, set[str]]] = {}
    for row in rows:
        of_benchmark = values.setdefault(row.entry.benchmark, {})
        for name, value in _content(row, catalog).items():
            of_benchmark.setdefault(name, set()).add(json.dumps(value, sort_keys=True))
    # Factors of the plan describe these two already.
    described = {"conditions", "backgrounds"}
    counts = Counter(row.entry.benchmark for row in rows)
    return {
        benchmark: {LABEL}
        if len(by_name.get(LABEL, ())) == counts[benchmark] > 1
        else {name for name, texts in by_name.items() if len(texts) > 1} - described
        for benchmark, by_name in values.items()
    }


def _with_baselines(
    context: PlanContext, settings: list[Setting], by_entry: Sequence[Sequence[BoundFactor]]
) -> list[Setting]:
    """Returns the settings, each with the alternative that is its baseline."""
    baseline = context.plan.design.baseline
    if not baseline:
        return settings
    loc: Loc = ("design", "baseline")
    factors = [factor for entry in by_entry for factor in entry]
    bound_names = {factor.name for factor in factors}
    further = {name for setting in settings for name in setting.factors} - bound_names
    for name in baseline.keys() & further - {"arm"}:
        known = {json.dumps(s.factors[name], default=str) for s in settings if name in s.factors}
        text = json.dumps(baseline[name], default=str)
        if text not in known:
            message = f"'{name}' has no level {text}."
            raise context.error((*loc, name), message, f"It has: {', '.join(sorted(known))}.")
    levels = {name: raw for name, raw in baseline.items() if name not in further}
    crossing.check_levels(context, levels, factors, bound_names | {"target"}, loc)
    labels = [_labels(baseline, entry) for entry in by_entry]
    load_names = {factor.name for factor in factors if factor.describes_loads}
    pairs = baselines.partners(settings, labels, str(baseline.get("target", "")), load_names)
    if not any(pairs.values()):
        raise context.error(
            loc,
            "no alternative has a baseline to be compared with.",
            "Name levels that the plan runs, besides others of the same factors.",
        )
    return [replace(setting, baseline=pairs[setting.index]) for setting in settings]


def _labels(baseline: Mapping[str, Any], factors: Sequence[BoundFactor]) -> dict[str, Any]:
    """Returns the baseline's levels as results name them, for the factors of one entry."""
    named = {factor.name: factor for factor in factors}
    labels = {}
    for name, raw in baseline.items():
        level = named[name].level(raw) if name in named else None
        labels[name] = level.label if level is not None else raw
    return labels
