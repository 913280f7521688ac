"""Which combinations of levels are run: the full crossing, a fraction, without what is excluded."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nephoscope.errors import PlanError
from nephoscope.plans.design import fraction
from nephoscope.plans.design.fraction import Fraction, UnbalancedFraction
from nephoscope.plans.factors.bound import BoundFactor, Level
from nephoscope.plans.model import Plan
from nephoscope.reading.sentences import Place, did_you_mean
from nephoscope.reading.yamltext import Loc


@dataclass(frozen=True, slots=True)
class Crossing:
    """How an entry's factors were combined. excluded: combinations that were left out."""

    entry: int
    factors: tuple[str, ...]
    fraction: Fraction
    excluded: int


def divisor(plan: Plan) -> int:
    """The fraction 1/divisor of the crossing that is run."""
    return int(plan.design.fraction.partition("/")[2] or 1)


def check_exclusions(plan: Plan, own: Sequence[Sequence[BoundFactor]], place: Place) -> None:
    """Every factor of `design` exists, with that level, in some entry."""
    every = [lever for entry in own for lever in entry]
    names = {lever.name for lever in every}
    for number, levels in enumerate(plan.design.exclude):
        check_levels(
            levels, every, {*names, "benchmark"}, ("design", "exclude", number), plan, place
        )
        if not levels:
            raise PlanError(
                f"{place(('design', 'exclude', number))}this excludes everything.", "Name a factor."
            )
    if plan.design.exclude and divisor(plan) > 1:
        raise PlanError(
            f"{place(('design', 'exclude'))}a fraction is balanced only whole: `exclude` would "
            "unbalance it.",
            "Keep one of the two.",
        )


def check_levels(
    levels: Mapping[str, Any],
    every: Sequence[BoundFactor],
    names: set[str],
    loc: Loc,
    plan: Plan,
    place: Place,
) -> None:
    """Factors with a level, as `exclude` and `baseline` give them: all of them exist."""
    for name, raw in levels.items():
        at = place((*loc, name))
        if name not in names:
            raise PlanError(
                f"{at}the plan has no factor '{name}'{did_you_mean(name, names)}.",
                f"It has: {', '.join(sorted(names))}.",
            )
        if name == "benchmark":
            known = list(dict.fromkeys(entry.benchmark for entry in plan.benchmarks))
        elif name == "target":
            known = [target.name for target in plan.targets]
        else:
            of_name = [lever for lever in every if lever.name == name]
            if any(lever.level(raw) for lever in of_name):
                continue
            known = list(
                dict.fromkeys(str(level.label) for lever in of_name for level in lever.levels)
            )
        if raw not in known:
            raise PlanError(
                f"{at}'{name}' has no level {json.dumps(raw, default=str)}.",
                f"It has: {', '.join(known)}.",
            )


def combinations(
    plan: Plan, number: int, entry_levers: Sequence[BoundFactor], place: Place
) -> tuple[Crossing, list[tuple[Level, ...]]]:
    """The combinations of levels that are run."""
    ordered = [_baseline_first(plan, lever) for lever in entry_levers]
    try:
        part = fraction.part(
            [lever.name for lever in entry_levers],
            [len(levels) for levels in ordered],
            divisor(plan),
            plan.seed or 0,
        )
    except UnbalancedFraction as error:
        raise PlanError(
            f"{place(('design', 'fraction'))}benchmarks.{number}: {error}.", error.hint
        ) from error
    if part.kind == "full":
        every: Iterator[tuple[Level, ...]] = itertools.product(
            *(lever.levels for lever in entry_levers)
        )
    else:
        # In the order in which the full crossing would have them.
        wanted = {
            tuple(levels[at] for levels, at in zip(ordered, row, strict=True)) for row in part.rows
        }
        every = (
            levels
            for levels in itertools.product(*(lever.levels for lever in entry_levers))
            if levels in wanted
        )
    chosen, excluded = [], 0
    for levels in every:
        if _excluded(plan, number, entry_levers, levels):
            excluded += 1
        else:
            chosen.append(levels)
    names = tuple(lever.name for lever in entry_levers)
    return Crossing(number, names, part, excluded), chosen


def _baseline_first(plan: Plan, lever: BoundFactor) -> list[Level]:
    """The levels with the baseline's in front: a fraction always holds the first of all."""
    first = lever.level(plan.design.baseline.get(lever.name))
    if lever.name not in plan.design.baseline or first is None:
        return list(lever.levels)
    return [first, *(level for level in lever.levels if level is not first)]


def _excluded(
    plan: Plan, number: int, entry_levers: Sequence[BoundFactor], levels: Sequence[Level]
) -> bool:
    if not plan.design.exclude:
        return False
    names = [lever.name for lever in entry_levers]
    benchmark = plan.benchmarks[number].benchmark
    for rule in plan.design.exclude:
        if all(
            raw == benchmark
            if name == "benchmark"
            else name in names
            and entry_levers[names.index(name)].level(raw) is levels[names.index(name)]
            for name, raw in rule.items()
        ):
            return True
    return False
