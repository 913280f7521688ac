"""Combines levels: the full crossing or a fraction of it, without what is excluded."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from nephoscope.core.reading.sentences import did_you_mean
from nephoscope.core.reading.yamltext import Loc
from nephoscope.core.records import dataclass
from nephoscope.measure.plans.context import PlanContext
from nephoscope.measure.plans.design import fraction
from nephoscope.measure.plans.design.fraction import Fraction, UnbalancedFraction
from nephoscope.measure.plans.factors.bound import BoundFactor, Level
from nephoscope.measure.plans.model import Plan


@dataclass(frozen=True, slots=True)
class Crossing:
    """Combination of an entry's factors. excluded: number of combinations left out."""

    entry: int
    factors: tuple[str, ...]
    fraction: Fraction
    excluded: int


def divisor(plan: Plan) -> int:
    """Returns the divisor of the fraction 1/divisor of the crossing that is run."""
    return int(plan.design.fraction.partition("/")[2] or 1)


def check_exclusions(context: PlanContext, factors: Sequence[BoundFactor]) -> None:
    """Raises PlanError unless every level of `design.exclude` exists in some entry."""
    design = context.plan.design
    names = {*(factor.name for factor in factors), "benchmark"}
    for number, levels in enumerate(design.exclude):
        loc: Loc = ("design", "exclude", number)
        check_levels(context, levels, factors, names, loc)
        if not levels:
            raise context.error(loc, "this excludes everything.", "Name a factor.")
    if design.exclude and divisor(context.plan) > 1:
        raise context.error(
            ("design", "exclude"),
            "a fraction is balanced only whole: `exclude` would unbalance it.",
            "Keep one of the two.",
        )


def check_levels(
    context: PlanContext,
    levels: Mapping[str, Any],
    factors: Sequence[BoundFactor],
    names: set[str],
    loc: Loc,
) -> None:
    """Raises PlanError unless all levels of `exclude` or `baseline` exist."""
    for name, raw in levels.items():
        at: Loc = (*loc, name)
        if name not in names:
            raise context.error(
                at,
                f"the plan has no factor '{name}'{did_you_mean(name, names)}.",
                f"It has: {', '.join(sorted(names))}.",
            )
        if name == "benchmark":
            known = list(dict.fromkeys(entry.benchmark for entry in context.plan.benchmarks))
        elif name == "target":
            known = [target.name for target in context.plan.targets]
        else:
            named = [factor for factor in factors if factor.name == name]
            if any(factor.level(raw) for factor in named):
                continue
            labels = (str(level.label) for factor in named for level in factor.levels)
            known = list(dict.fromkeys(labels))
        if raw not in known:
            message = f"'{name}' has no level {json.dumps(raw, default=str)}."
            raise context.error(at, message, f"It has: {', '.join(known)}.")


def combinations(
    context: PlanContext, number: int, factors: Sequence[BoundFactor]
) -> tuple[Crossing, list[tuple[Level, ...]]]:
    """Returns the combinations of levels that are run."""
    plan = context.plan
    ordered = [_baseline_first(plan, factor) for factor in factors]
    try:
        part = fraction.part(
            [factor.name for factor in factors],
            [len(levels) for levels in ordered],
            divisor(plan),
            plan.seed or 0,
        )
    except UnbalancedFraction as error:
        message = f"benchmarks.{number}: {error}."
        raise context.error(("design", "fraction"), message, error.hint) from error
    rows = set(part.rows)
    # In the order in which the full crossing has them; a level may be a list, which has no hash.
    crossed = [
        levels
        for levels in itertools.product(*(factor.levels for factor in factors))
        if part.kind == "full"
        or tuple(values.index(level) for values, level in zip(ordered, levels, strict=True)) in rows
    ]
    chosen = [levels for levels in crossed if not _is_excluded(plan, number, factors, levels)]
    names = tuple(factor.name for factor in factors)
    return Crossing(number, names, part, len(crossed) - len(chosen)), chosen


def _baseline_first(plan: Plan, factor: BoundFactor) -> list[Level]:
    """The levels with the baseline's in front: a fraction always holds the first of all."""
    first = factor.level(plan.design.baseline.get(factor.name))
    if factor.name not in plan.design.baseline or first is None:
        return list(factor.levels)
    return [first, *(level for level in factor.levels if level is not first)]


def _is_excluded(
    plan: Plan, number: int, factors: Sequence[BoundFactor], levels: Sequence[Level]
) -> bool:
    benchmark = plan.benchmarks[number].benchmark
    chosen = {factor.name: (factor, level) for factor, level in zip(factors, levels, strict=True)}

    def holds(name: str, raw: Any) -> bool:
        if name == "benchmark":
            return bool(raw == benchmark)
        factor, level = chosen.get(name, (None, None))
        return factor is not None and factor.level(raw) is level

    return any(all(holds(name, raw) for name, raw in rule.items()) for rule in plan.design.exclude)
