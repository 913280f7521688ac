"""One repetition of a plan: measured as an ordinary run, analysed, and what is kept of it here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from nephoscope.core.model import (
    Estimate,
    Finding,
    LineKey,
    RunResult,
    Severity,
    Shape,
    factors_key,
)
from nephoscope.core.naming import plural
from nephoscope.measure import plans, runs
from nephoscope.measure.runs import Observer
from nephoscope.report import summary
from nephoscope.results import analyse_run
from nephoscope.results.names import UNANSWERED
from nephoscope.store import FAILED, FINISHED, MEASURED, RUNNING, Store, StoredRun, counts, query
from nephoscope.store.day_files import WATCH

SERIES_LABEL = "watch-series"
"""Label of the runs between two edits of the plan; its value is the number of the series."""
MAX_ANSWERS = 5
"""Sentences of a repetition that its event has."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram of the newest run: values ascend, counts belong to them.

    unanswered: value -> how many of its requests had no answer; the value is a lower bound for
    those.
    """

    benchmark: str
    metric: str
    target: str
    factors: str
    unit: str
    values: tuple[float, ...]
    counts: tuple[int, ...]
    unanswered: Mapping[float, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WatchRepetition:
    """A repetition that was measured. lost: target -> why it was not. estimates: of its run.

    recorded: the targets that answered from a recording and measured nothing. warnings: findings of
    the run that a person should see. answers: sentences on the question of its plan.
    """

    run: str
    verdict: str
    lost: Mapping[str, str] = field(default_factory=dict)
    estimates: Mapping[LineKey, Estimate] = field(default_factory=dict)
    distributions: tuple[Distribution, ...] = ()
    recorded: frozenset[str] = frozenset()
    warnings: tuple[Finding, ...] = ()
    answers: tuple[str, ...] = ()


Created = Callable[[str], None]
"""Takes the id of a run as soon as it is stored."""
Measure = Callable[
    [plans.Plan, Store, Mapping[str, str], Mapping[str, str], Created], WatchRepetition
]
"""Plan, store, labels of the run, targets that are left out with the reasons -> the repetition."""


def measurement(observing: Callable[[Created], AbstractContextManager[Observer]]) -> Measure:
    """Returns what measures a plan. observing: makes the observer that a person sees."""

    def measure(
        plan: plans.Plan,
        store: Store,
        labels: Mapping[str, str],
        absent: Mapping[str, str],
        created: Created,
    ) -> WatchRepetition:
        for target in plan.targets:
            if target.name not in absent:
                target.require_programs()
        with observing(created) as observer:
            run = runs.execute(plan, store, observer, fresh=True, labels=labels, absent=absent)
        result = analyse_run.build(run)
        runs.mark_reported(run)
        return _repetition(run, result)

    return measure


def _repetition(run: StoredRun, result: RunResult) -> WatchRepetition:
    estimates = {
        (line.benchmark, line.metric, line.target, factors_key(line.factors)): line.estimate
        for line in result.metrics
        if not line.estimate.censored  # a gauge is a number, and this is a lower bound
    }
    units = {key: metric.unit for key, metric in run.metrics_of_shape(Shape.HISTOGRAM).items()}
    beyond = _unanswered(run)
    distributions = tuple(
        Distribution(
            *key, units[key[0], key[1]], tuple(values), tuple(numbers), beyond.get(key, {})
        )
        for key, (values, numbers) in result.histograms.items()
        if key[:2] in units
    )
    lost = {str(name): str(why) for name, why in run.manifest.lost.items()}
    recorded = frozenset(run.manifest.recorded_targets)
    warnings = tuple(finding for finding in result.findings if finding.severity is Severity.WARNING)
    verdict = " ".join(filter(None, (result.run.recorded, _verdict(result, warnings))))
    answers = tuple(summary.answers(result)[:MAX_ANSWERS])
    return WatchRepetition(
        run.id, verdict, lost, estimates, distributions, recorded, warnings, answers
    )


def _unanswered(run: StoredRun) -> Mapping[LineKey, Mapping[float, int]]:
    """The requests without an answer of each histogram, by the time that they waited."""
    all_requests = {waits: name for name, waits in UNANSWERED.items()}
    rows = [row for row in query.histograms(run) if row.metric in all_requests]
    waits_by_line: dict[LineKey, Mapping[float, int]] = {}
    for row in rows:
        key = (row.benchmark, all_requests[row.metric], row.target, row.factors)
        waits_by_line[key] = Counter(waits_by_line.get(key, {})) + Counter(
            dict(zip(row.values.tolist(), row.counts.tolist(), strict=True))
        )
    return waits_by_line


def _verdict(result: RunResult, warnings: Sequence[Finding]) -> str:
    """Returns the first warning, else how many of the metrics are as precise as wanted."""
    if warnings:
        more = f" (and {len(warnings) - 1} more warnings)" if len(warnings) > 1 else ""
        return f"{warnings[0].sentence}{more}"
    wide = len(result.run.not_converged)
    precision = f"{wide} imprecise" if wide else "all precise enough"
    return f"{plural(len(result.metrics), 'metric')}, {precision}"


def close_interrupted(store: Store, run_id: str, watch: str, not_before: str) -> StoredRun | None:
    """Ends the run that a kill or a full disk interrupted, with the trials that it has.

    run_id: empty where the kill came before the id was noted; then the unfinished run of the watch
    whose id is `not_before` (a time as ids begin with) or later. A run without a trial is removed.
    Returns the run, None where there is none or nothing of it.
    """
    if run_id:
        candidates = [store.find(run_id)] if run_id in store.ids() else []
    else:
        candidates = [run for run in store.runs() if run.id >= not_before]
    for run in candidates:
        is_own = run.labels.get(WATCH) == watch
        if not is_own or run.state not in (RUNNING, MEASURED):
            continue
        with run.lock():
            records = run.records()
            if records:
                run.finish(FINISHED if any(map(counts, records)) else FAILED)
        if records:
            return run
        store.remove(run)
    return None
