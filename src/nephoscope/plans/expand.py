"""A plan's settings: the full crossing of its factors, in a fixed order."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from nephoscope.catalog import Catalog
from nephoscope.errors import PlanError
from nephoscope.model import Setting
from nephoscope.plans.check import checked
from nephoscope.plans.model import Entry, Plan

MAX_SETTINGS = 1000


def expand(plan: Plan, catalog: Catalog) -> list[Setting]:
    """Every setting of the plan; `index` is its place in the list.

    Entries keep the plan's order; of the factors of an entry the last one varies fastest. Where
    several entries run one benchmark, a parameter in which they differ is a factor too: results
    with different parameters must not be taken for repetitions of one another.
    Raises PlanError when two settings are the same or when there are more than MAX_SETTINGS.
    """
    plan = checked(plan, catalog)
    total = sum(_size(entry) for entry in plan.benchmarks)
    if total > MAX_SETTINGS:
        raise PlanError(
            f"The plan has {total} settings; more than {MAX_SETTINGS} are not run.",
            "Split it, or vary fewer factors.",
        )
    rows = [
        (number, entry, params)
        for number, entry in enumerate(plan.benchmarks)
        for params in _crossing(entry)
    ]
    differing = _differing(rows, catalog)
    settings = []
    seen: dict[tuple[str, str], int] = {}
    for index, (number, entry, params) in enumerate(rows):
        full = _with_defaults(entry.benchmark, params, catalog)
        key = (entry.benchmark, json.dumps(full, sort_keys=True))
        if key in seen:
            raise PlanError(
                f"benchmarks.{number} repeats a setting of {entry.benchmark} that benchmarks."
                f"{seen[key]} has already.",
                "Remove one; repetition is what `repeat` is for.",
            )
        seen[key] = number
        names = [*entry.factors, *sorted(differing[entry.benchmark] - set(entry.factors))]
        settings.append(
            Setting(
                index=index,
                benchmark=entry.benchmark,
                params=params,
                factors={name: _level(full[name]) for name in names},
                timeout_s=entry.timeout_s,
                headline=entry.headline,
                entry=number,
            )
        )
    return settings


def _size(entry: Entry) -> int:
    size = 1
    for levels in entry.factors.values():
        size *= len(levels)
    return size


def _crossing(entry: Entry) -> Iterator[dict[str, Any]]:
    names = list(entry.factors)
    for levels in itertools.product(*entry.factors.values()):
        yield {**entry.params, **dict(zip(names, levels, strict=True))}


def _with_defaults(benchmark: str, params: Mapping[str, Any], catalog: Catalog) -> dict[str, Any]:
    return {
        param.id: params.get(param.id, param.default)
        for param in catalog.benchmark(benchmark).params
    }


def _differing(
    rows: list[tuple[int, Entry, dict[str, Any]]], catalog: Catalog
) -> dict[str, set[str]]:
    """Benchmark -> parameters that are not the same in all of its settings."""
    values: dict[str, dict[str, set[str]]] = {}
    for _, entry, params in rows:
        of_benchmark = values.setdefault(entry.benchmark, {})
        for name, value in _with_defaults(entry.benchmark, params, catalog).items():
            of_benchmark.setdefault(name, set()).add(json.dumps(value))
    return {
        benchmark: {name for name, seen in params.items() if len(seen) > 1}
        for benchmark, params in values.items()
    }


def _level(value: Any) -> Any:
    """A JSON scalar: a list becomes its canonical text, since a factor's level is one thing."""
    return json.dumps(value, separators=(",", ":")) if isinstance(value, list) else value
