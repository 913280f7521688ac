"""Counts of the request generators of a run: requests due, sent and answered, errors, overload."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from statistics import median
from typing import Any

from nephoscope import catalog
from nephoscope.catalog.meaning import Domain, RequestLoop
from nephoscope.core.model import Factors, factors_key, stated
from nephoscope.core.records import dataclass
from nephoscope.core.shared_load import merged_name, sharing_targets
from nephoscope.features.load.generators import (
    GeneratorTrial,
    SharedLoadCounts,
    shared_counts,
)
from nephoscope.results.run_data import RunData
from nephoscope.store import counts


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


UNANSWERED = frozenset({"timeout", "unsent"})
"""Kinds of errors of requests whose latency is known as a lower bound only."""

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
    """Counts of a run's request generators, a line for each setting and target.

    shared: of loads that several generators shared, with the counts of each.
    """

    lines: tuple[LoadCounts, ...]
    shared: tuple[SharedLoadCounts, ...] = ()


def analyse(data: RunData) -> LoadAnalysis | None:
    """Returns the counts; None where no trial of a generator is valid and none shared a load."""
    lines: dict[tuple[str, str, str], list[LoadCounts]] = {}
    sharing = {
        setting["index"]: names
        for setting in data.manifest.settings
        if (names := sharing_targets(setting))
    }
    parts: dict[int, list[GeneratorTrial]] = {}
    singles: list[LoadCounts] = []
    for record, table in data.run.tables():
        if record.benchmark not in generators() or record.key.round < 1:
            continue
        if record.key.setting in sharing:
            parts.setdefault(record.key.setting, []).append(GeneratorTrial.of(record, table))
        elif counts(record):
            singles.append(_line(GeneratorTrial.of(record, table)))
    shared = []
    for index, own in parts.items():
        names, spec = sharing[index], data.run.spec(own[0].record.benchmark)
        defaults = {param.id: param.default for param in spec.params}
        shared.append(shared_counts(merged_name(names), names, own, defaults))
        singles += _together(merged_name(names), names, own)
    for line in singles:
        key = (line.benchmark, line.target, factors_key(line.factors))
        lines.setdefault(key, []).append(line)
    summed = tuple(sorted(map(_sum, lines.values()), key=_place))
    return LoadAnalysis(summed, tuple(shared)) if summed or shared else None


def _place(line: LoadCounts) -> tuple[Any, ...]:
    """Settings by their levels, numbers ascending."""
    levels = [
        (name, (0, level, "") if isinstance(level, int | float) else (1, 0, str(level)))
        for name, level in sorted(line.factors.items())
    ]
    return line.benchmark, line.target, levels


def _line(trial: GeneratorTrial) -> LoadCounts:
    """The counts of one trial."""
    record, values, errors = trial.record, trial.values, trial.errors_count
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
        unasked_count=trial.unasked_count,
        served_per_s=values.get("requests_per_s", 0.0),
        offered_per_s=offered,
        overloaded_trials=int(offered is not None and is_late),
        notes=Counter(record.notes),
    )


def _together(
    target: str, names: Sequence[str], trials: Iterable[GeneratorTrial]
) -> Iterator[LoadCounts]:
    """Yields the counts of each trial of generators that share a load, if all of them are valid."""
    by_round: dict[tuple[int, int], list[LoadCounts]] = {}
    for trial in trials:
        if counts(trial.record):
            key = trial.record.key
            by_round.setdefault((key.round, key.repeat_index), []).append(_line(trial))
    for own in by_round.values():
        if len(own) == len(names):
            offered = [line.offered_per_s for line in own if line.offered_per_s is not None]
            yield replace(
                _sum(own),
                target=target,
                trials=1,
                served_per_s=sum(line.served_per_s for line in own),
                offered_per_s=sum(offered) if offered else None,
                overloaded_trials=max(line.overloaded_trials for line in own),
                notes=dict.fromkeys((note for line in own for note in line.notes), 1),
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
