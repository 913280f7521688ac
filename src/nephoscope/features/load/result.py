"""Counts of the request generators of a run: requests due, sent and answered, errors, overload."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from statistics import median
from typing import TYPE_CHECKING, Any

from nephoscope import catalog
from nephoscope.catalog.meaning import Domain, RequestLoop
from nephoscope.core.model import Factors, TrialRecord, factors_key, stated
from nephoscope.results.names import AUXILIARY_FACTORS
from nephoscope.results.run_data import RunData
from nephoscope.store import counts

if TYPE_CHECKING:
    import pyarrow as pa


@cache
def generators() -> frozenset[str]:
    """Returns the native request generators; only they count every request by its outcome."""
    return frozenset(
        catalog.ids_where(
            lambda spec: (
                spec.kind == catalog.NATIVE
                and spec.domain is not Domain.NONE
                and spec.request_loop is not RequestLoop.NONE
            )
        )
    )


SUM = "any"
"""The kind of error that stands for all of them."""
UNANSWERED = frozenset({"timeout", "unsent"})
"""Kinds of errors of requests whose latency is known as a lower bound only."""
NO_REQUEST = "unasked_bytes"
"""The kind of error that is no request."""
_COUNTS = frozenset({"due_count", "sent_count", "completed_count"})
_RATES = {"requests_per_s": "served_per_s", "offered_per_s": "offered_per_s"}

_UNSENT_SHARE = 0.01
_PACE = 0.9
"""A trial is overloaded where a larger share of the requests due was never sent, because every
connection was busy; or where requests ended at a lower pace than they were due: a queue grew."""


@dataclass(frozen=True, slots=True)
class LoadCounts:
    """Counts of one setting on one target, summed over its valid trials, warm-up included.

    due_count: requests that were due: those with a valid response (completed_count) and those that
    failed (errors_count, by kind), of which unanswered_count have no answer: timed out, or unsent
    because every connection was busy until the end. sent_count: requests sent. unasked_count: times
    that a server sent bytes which no request had asked for. served_per_s, offered_per_s: median
    rates over the trials; offered None in a closed loop. overloaded_trials: in which the server did
    not keep up. notes: what a trial states about itself, with the number of trials that state it.
    """

    benchmark: str
    target: str
    factors: Factors
    params: Mapping[str, Any]
    trials: int
    due_count: int
    sent_count: int
    completed_count: int
    errors_count: Mapping[str, int]
    unasked_count: int
    served_per_s: float
    offered_per_s: float | None
    overloaded_trials: int
    notes: Mapping[str, int]

    @stated
    def unanswered_count(self) -> int:
        """Returns the requests without an answer, whose latency is known as a lower bound only."""
        return sum(self.errors_count.get(kind, 0) for kind in UNANSWERED)

    @stated
    def is_overloaded(self) -> bool:
        """States whether the server did not keep up in most trials."""
        return 2 * self.overloaded_trials > self.trials


@dataclass(frozen=True, slots=True)
class LoadAnalysis:
    """Counts of a run's request generators, a line for each setting and target."""

    lines: tuple[LoadCounts, ...]


def analyse(data: RunData) -> LoadAnalysis | None:
    """Returns the counts; None where no trial of a generator is valid."""
    lines: dict[tuple[str, str, str], list[LoadCounts]] = {}
    for record, table in data.run.tables():
        if record.benchmark in generators() and counts(record):
            line = _line(record, table)
            key = (line.benchmark, line.target, factors_key(line.factors))
            lines.setdefault(key, []).append(line)
    return LoadAnalysis(tuple(sorted(map(_sum, lines.values()), key=_place))) if lines else None


def _place(line: LoadCounts) -> tuple[Any, ...]:
    """Settings by their levels, numbers ascending."""
    levels = [
        (name, (0, level, "") if isinstance(level, int | float) else (1, 0, str(level)))
        for name, level in sorted(line.factors.items())
    ]
    return line.benchmark, line.target, levels


def _line(record: TrialRecord, table: pa.Table) -> LoadCounts:
    """The counts of one trial."""
    values: dict[str, float] = {}
    errors: Counter[str] = Counter()
    names = ("metric", "value", "factors")
    for metric, value, text in zip(*(table.column(n).to_pylist() for n in names), strict=True):
        factors = json.loads(text)
        if AUXILIARY_FACTORS & factors.keys():  # a server that runs as a load counts its own errors
            continue
        if metric == "errors_count":
            errors[factors["kind"]] += int(value)
        elif metric in _COUNTS or metric in _RATES or metric == "pace_ratio":
            values[metric] = value
    unasked = errors.pop(NO_REQUEST, 0)
    errors.pop(SUM, None)
    completed = int(values.get("completed_count", 0))
    # Trials of an older version do not state how many requests were due.
    due = int(values.get("due_count", completed + errors.total()))
    offered = values.get("offered_per_s")
    is_late = errors["unsent"] > _UNSENT_SHARE * due or values.get("pace_ratio", 1.0) < _PACE
    return LoadCounts(
        record.benchmark,
        record.key.target,
        record.factors,
        record.params,
        trials=1,
        due_count=due,
        sent_count=int(values.get("sent_count", 0)),
        completed_count=completed,
        errors_count={kind: count for kind, count in errors.items() if count},
        unasked_count=unasked,
        served_per_s=values.get("requests_per_s", 0.0),
        offered_per_s=offered,
        overloaded_trials=int(offered is not None and is_late),
        notes=Counter(record.notes),
    )


def _sum(trials: list[LoadCounts]) -> LoadCounts:
    errors: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    for trial in trials:
        errors.update(trial.errors_count)
        notes.update(trial.notes)
    offered = [trial.offered_per_s for trial in trials if trial.offered_per_s is not None]
    return replace(
        trials[0],
        trials=len(trials),
        due_count=sum(trial.due_count for trial in trials),
        sent_count=sum(trial.sent_count for trial in trials),
        completed_count=sum(trial.completed_count for trial in trials),
        errors_count=dict(errors),
        unasked_count=sum(trial.unasked_count for trial in trials),
        served_per_s=median(trial.served_per_s for trial in trials),
        offered_per_s=median(offered) if offered else None,
        overloaded_trials=sum(trial.overloaded_trials for trial in trials),
        notes=dict(notes),
    )
