"""A plan's settings: the crossing of its factors, or a part of it, in a fixed order."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nephoscope.catalog import Catalog
from nephoscope.errors import PlanError, UsageError
from nephoscope.model import Background, Setting
from nephoscope.plans.check import checked, nowhere
from nephoscope.plans.design import aba, baselines, crossing
from nephoscope.plans.design.crossing import Crossing
from nephoscope.plans.factors import lab, of_plan
from nephoscope.plans.factors.bound import BoundFactor, Level, scalar
from nephoscope.plans.model import Entry, Plan
from nephoscope.plans.participants import Cast, cast
from nephoscope.reading.sentences import Place

MAX_SETTINGS = 1000
_MAX_CROSSED = 200_000
"""Combinations that are looked at before a fraction or exclusions make them fewer."""

ARMS = ("a", "b")


@dataclass(slots=True)
class _Row:
    """One combination of levels of one entry, on its way to a setting."""

    number: int
    entry: Entry
    on: tuple[str, ...]
    peer: str
    params: dict[str, Any]
    labels: dict[str, Any] = field(default_factory=dict)
    conditions: dict[str, Any] = field(default_factory=dict)
    backgrounds: tuple[Background, ...] = ()
    block: str = ""
    varied: frozenset[str] = frozenset()
    """Parameters that a factor of the entry sets."""
    how: dict[str, tuple[BoundFactor, Any]] = field(default_factory=dict)
    """Factor -> how every load that runs is to run; empty where none does."""
    arm: str = ""


def expand(plan: Plan, catalog: Catalog, place: Place = nowhere) -> list[Setting]:
    """Every setting of the plan; `index` is its place in the list.

    Entries keep the plan's order; of the factors (an entry's own, then the plan's) the last one
    varies fastest. Where several entries run one benchmark, whatever they differ in (a parameter,
    the peer, whether targets run together) is a factor too: results of different settings must not
    be taken for repetitions of one another.
    Raises PlanError when two settings are the same, when there are more than MAX_SETTINGS, and for
    whatever `checked` and `cast` refuse.
    """
    return _expanded(plan, catalog, place)[0]


def crossings(plan: Plan, catalog: Catalog) -> list[Crossing]:
    """How the factors of each entry are combined."""
    return _expanded(plan, catalog, nowhere)[1]


def _expanded(plan: Plan, catalog: Catalog, place: Place) -> tuple[list[Setting], list[Crossing]]:
    plan = checked(plan, catalog, place)
    parts = cast(plan, catalog, place)
    own = [_levers_of(plan, parts, number, catalog) for number in range(len(plan.benchmarks))]
    crossing.check_exclusions(plan, own, place)
    total = sum(_size(plan, found) for found in own)
    if total > (MAX_SETTINGS if not plan.design.exclude else _MAX_CROSSED):
        raise _too_many(total, place)
    rows: list[_Row] = []
    found: list[Crossing] = []
    for number, entry_levers in enumerate(own):
        entry_crossing, combinations = crossing.combinations(plan, number, entry_levers, place)
        found.append(entry_crossing)
        every = [
            _row(plan, parts, number, entry_levers, levels, catalog) for levels in combinations
        ]
        rows += _once(every) if any(lever.of_loads for lever in entry_levers) else every
    if plan.design.a_a:
        rows = [replace(row, arm=arm) for row in rows for arm in ARMS]
    if len(rows) > MAX_SETTINGS:
        raise _too_many(len(rows), place)
    if not rows:
        raise PlanError(
            f"{place(('design', 'exclude'))}every combination is excluded.", "Exclude fewer."
        )
    _possible_conditions(parts, rows, place)
    aba.check(plan, place)
    settings = _settings(parts, rows, catalog, place)
    return _with_baselines(plan, settings, own, place), found


def _levers_of(plan: Plan, parts: Cast, number: int, catalog: Catalog) -> list[BoundFactor]:
    """The entry's own factors, then those of the plan that apply to it."""
    wanted = [lever for lever in parts.levers if lever.entry in (None, number)]
    entry = plan.benchmarks[number]
    return [*of_plan.of_entry(entry, number, catalog.benchmark(entry.benchmark)), *wanted]


def _size(plan: Plan, entry_levers: Sequence[BoundFactor]) -> int:
    whole = math.prod(len(lever.levels) for lever in entry_levers)
    arms = len(ARMS) if plan.design.a_a else 1
    return arms * max(1, whole // crossing.divisor(plan))


def _too_many(total: int, place: Place) -> PlanError:
    return PlanError(
        f"{place(('design',))}The plan has {total} settings; more than {MAX_SETTINGS} are not run.",
        "Split it, vary fewer factors, or run a part of them: design.fraction.",
    )


def _row(
    plan: Plan,
    parts: Cast,
    number: int,
    entry_levers: Sequence[BoundFactor],
    levels: Sequence[Level],
    catalog: Catalog,
) -> _Row:
    entry = plan.benchmarks[number]
    row = _Row(number, entry, parts.on[number], parts.peers[number], dict(entry.params))
    active = [load.name for load in plan.backgrounds]
    extra: dict[str, dict[str, Any]] = {load.name: {} for load in parts.backgrounds}
    varied, blocks = set(), []
    for lever, level in zip(entry_levers, levels, strict=True):
        row.labels[lever.name] = level.label
        if lever.blocked:
            blocks.append(f"{lever.name}={level.label}")
        if lever.sets == "param":
            row.params[lever.key] = level.value
            varied.add(lever.key)
        elif lever.sets == "lab":
            row.conditions[lever.key] = level.value
        elif lever.sets == "load param":
            extra[lever.of][lever.key] = level.value
        elif lever.of_loads:
            row.how[lever.name] = (lever, level.value)
        elif lever.sets == "load active":
            active = [name for name in active if level.value or name != lever.of]
        else:
            active = [name for name in active if name in level.value]
    row.backgrounds = tuple(
        _told_how(replace(load, params={**load.params, **extra[load.name]}), row, catalog)
        for load in parts.backgrounds
        if load.name in active
    )
    for name in active:
        row.conditions |= parts.treatments.get(name, {})
    if not row.backgrounds:
        row.labels |= {name: lever.without for name, (lever, _) in row.how.items()}
        row.how = {}
    row.varied, row.block = frozenset(varied), ",".join(blocks)
    return row


def _told_how(load: Background, row: _Row, catalog: Catalog) -> Background:
    """The load as the row wants every load to run; what the load says itself stays."""
    known = {param.id for param in catalog.benchmark(load.benchmark).params}
    params, targets = dict(load.params), load.targets
    for lever, value in row.how.values():
        if lever.sets == "count":
            targets = targets[:value]
        elif lever.key in known:
            params.setdefault(lever.key, value)
    return replace(load, params=params, targets=targets)


def _once(rows: Sequence[_Row]) -> list[_Row]:
    """Without a load it does not matter how loads run: of such rows one stays."""
    found: dict[str, _Row] = {}
    for row in rows:
        found.setdefault(json.dumps([row.number, row.labels], sort_keys=True), row)
    return list(found.values())


def _possible_conditions(parts: Cast, rows: Sequence[_Row], place: Place) -> None:
    """Levels that are possible one by one may not be so together: a jitter beyond its delay."""
    if parts.topology is None:
        return
    seen: set[str] = set()
    for row in rows:
        for conditions in _of_each_thing(row.conditions):
            key = json.dumps(conditions, sort_keys=True)
            if key in seen:
                continue
            seen.add(key)
            try:
                lab.applied(parts.topology, conditions)
            except UsageError as error:
                told = ", ".join(f"{name}={label}" for name, label in row.labels.items())
                raise PlanError(
                    f"{place(('factors',))}the combination {told} cannot be built: {error.message}",
                    "Leave it out with design.exclude.",
                ) from error


def _of_each_thing(conditions: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Conditions of one link, one host or all sites; those of two do not hinder one another."""
    found: dict[str, dict[str, Any]] = {}
    for path, value in conditions.items():
        kind, _, rest = path.partition(".")
        thing = kind if kind == "geo" else f"{kind}.{rest.partition('.')[0]}"
        found.setdefault(thing, {})[path] = value
    return [one for one in found.values() if len(one) > 1]


def _settings(parts: Cast, rows: Sequence[_Row], catalog: Catalog, place: Place) -> list[Setting]:
    differing = _differing(rows, catalog)
    settings = []
    seen: dict[str, _Row] = {}
    for index, row in enumerate(rows):
        everything = _everything(row, catalog)
        for target in row.on:
            # How a load is asked to run tells settings apart, even where the load ignores it:
            # one that does nothing is an A/A control of every level.
            how = {name: value for name, (_, value) in row.how.items()}
            key = json.dumps(
                [row.entry.benchmark, target, everything, row.arm, how], sort_keys=True
            )
            if key in seen:
                raise _twice(row, seen[key], place)
            seen[key] = row
        further = {
            name: scalar(everything[name])
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
                peer=row.peer,
                conditions=row.conditions,
                backgrounds=row.backgrounds,
                before=parts.before,
                after=parts.after,
                arm=row.arm,
                block=row.block,
            )
        )
    return settings


def _twice(row: _Row, other: _Row, place: Place) -> PlanError:
    if row.number != other.number:
        return PlanError(
            f"{place(('benchmarks', row.number))}benchmarks.{row.number} repeats a setting of "
            f"{row.entry.benchmark} that benchmarks.{other.number} has already.",
            "Remove one; repetition is what `repeat` is for.",
        )
    one, two = (
        ", ".join(
            f"{name}={label}"
            for name, label in each.labels.items()
            if row.labels[name] != other.labels[name]
        )
        for each in (other, row)
    )
    return PlanError(
        f"{place(('factors',))}the combinations with {one} and with {two} are the same experiment: "
        "the levels belong to a background that does not run.",
        "Leave one out with design.exclude.",
    )


def _everything(row: _Row, catalog: Catalog) -> dict[str, Any]:
    """All that a setting is, by name: parameters with their defaults, and how it is run."""
    params = {
        param.id: row.params.get(param.id, param.default)
        for param in catalog.benchmark(row.entry.benchmark).params
    }
    together = "+".join(row.on) if row.entry.together else "alone"
    loads = [[load.name, dict(load.params)] for load in row.backgrounds]
    return {
        **params,
        "peer": row.peer,
        "together": together,
        "conditions": row.conditions,
        "backgrounds": loads,
    }


def _differing(rows: Sequence[_Row], catalog: Catalog) -> dict[str, set[str]]:
    """Benchmark -> what is not the same in all of its settings, beside what the plan varies."""
    values: dict[str, dict[str, set[str]]] = {}
    for row in rows:
        of_benchmark = values.setdefault(row.entry.benchmark, {})
        for name, value in _everything(row, catalog).items():
            of_benchmark.setdefault(name, set()).add(json.dumps(value, sort_keys=True))
    # The plan's factors tell these two already, by names that a person gave.
    told = {"conditions", "backgrounds"}
    return {
        benchmark: {name for name, seen in found.items() if len(seen) > 1} - told
        for benchmark, found in values.items()
    }


def _with_baselines(
    plan: Plan, settings: list[Setting], own: Sequence[Sequence[BoundFactor]], place: Place
) -> list[Setting]:
    """The settings with what each is held against."""
    wanted = plan.design.baseline
    if not wanted:
        return settings
    names = {name for setting in settings for name in setting.factors}
    every = [lever for entry in own for lever in entry]
    further = {name for name in names if all(lever.name != name for lever in every)}
    for name in wanted.keys() & further - {"arm"}:
        known = {json.dumps(s.factors[name], default=str) for s in settings if name in s.factors}
        if json.dumps(wanted[name], default=str) not in known:
            raise PlanError(
                f"{place(('design', 'baseline', name))}'{name}' has no level "
                f"{json.dumps(wanted[name], default=str)}.",
                f"It has: {', '.join(sorted(known))}.",
            )
    mine = {name: raw for name, raw in wanted.items() if name not in further}
    crossing.check_levels(
        mine,
        every,
        {lever.name for lever in every} | {"target"},
        ("design", "baseline"),
        plan,
        place,
    )
    labels = [_labels(wanted, found) for found in own]
    of_loads = {lever.name for lever in every if lever.of_loads}
    found = baselines.partners(settings, labels, str(wanted.get("target", "")), of_loads)
    if not any(found.values()):
        raise PlanError(
            f"{place(('design', 'baseline'))}no alternative has a baseline to be held against.",
            "Name levels that the plan runs, beside others of the same factors.",
        )
    return [replace(setting, baseline=found[setting.index]) for setting in settings]


def _labels(wanted: Mapping[str, Any], entry_levers: Sequence[BoundFactor]) -> dict[str, Any]:
    """The baseline's levels as results name them, for the factors of one entry."""
    named = {lever.name: lever for lever in entry_levers}
    labels = {}
    for name, raw in wanted.items():
        level = named[name].level(raw) if name in named else None
        labels[name] = level.label if level is not None else raw
    return labels
