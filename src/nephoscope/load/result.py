"""Counts of the request generators of a run: requests, errors by kind, notes of trials."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nephoscope.model import Factors, TrialRecord, factors_key
from nephoscope.results.names import BESIDE
from nephoscope.results.run_data import RunData
from nephoscope.store import counts

if TYPE_CHECKING:
    import pyarrow as pa

GENERATORS = frozenset({"http.load", "kv.load"})
SUM = "any"
"""The kind of error that stands for all of them."""
_COUNTS = frozenset({"sent_count", "completed_count"})


@dataclass(frozen=True, slots=True)
class LoadCounts:
    """Counts of one setting on one target, summed over its valid trials, warm-up included.

    completed_count: valid responses. errors_count: failed requests by kind. notes: what a trial
    states about itself, with the number of trials that state it.
    """

    benchmark: str
    target: str
    factors: Factors
    params: Mapping[str, Any]
    trials: int
    sent_count: int
    completed_count: int
    errors_count: Mapping[str, int]
    notes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Load:
    """Counts of a run's request generators, a line for each setting and target."""

    lines: tuple[LoadCounts, ...]


def analyse(data: RunData) -> Load | None:
    """Returns the counts; None where no trial of a generator is valid."""
    lines: dict[tuple[str, str, str], LoadCounts] = {}
    for record, table in data.run.tables():
        if record.benchmark in GENERATORS and counts(record):
            line = _line(record, table)
            key = (line.benchmark, line.target, factors_key(line.factors))
            lines[key] = _sum(lines[key], line) if key in lines else line
    return Load(tuple(sorted(lines.values(), key=_place))) if lines else None


def _place(line: LoadCounts) -> tuple[Any, ...]:
    """Settings by their levels, numbers ascending."""
    levels = [
        (name, (0, level, "") if isinstance(level, int | float) else (1, 0, str(level)))
        for name, level in sorted(line.factors.items())
    ]
    return line.benchmark, line.target, levels


def _line(record: TrialRecord, table: pa.Table) -> LoadCounts:
    """The counts of one trial."""
    sums: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    names = ("metric", "value", "factors")
    for metric, value, text in zip(*(table.column(n).to_pylist() for n in names), strict=True):
        factors = json.loads(text)
        if BESIDE & factors.keys():  # a server that runs as a load counts its own errors
            continue
        if metric == "errors_count":
            errors[factors["kind"]] += int(value)
        else:
            sums[metric] += int(value) if metric in _COUNTS else 0
    return LoadCounts(
        record.benchmark,
        record.key.target,
        record.factors,
        record.params,
        trials=1,
        sent_count=sums["sent_count"],
        completed_count=sums["completed_count"],
        errors_count={kind: count for kind, count in errors.items() if kind != SUM},
        notes=Counter(record.notes),
    )


def _sum(total: LoadCounts, trial: LoadCounts) -> LoadCounts:
    return replace(
        total,
        trials=total.trials + trial.trials,
        sent_count=total.sent_count + trial.sent_count,
        completed_count=total.completed_count + trial.completed_count,
        errors_count=Counter(total.errors_count) + Counter(trial.errors_count),
        notes=Counter(total.notes) + Counter(trial.notes),
    )
