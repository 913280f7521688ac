"""The targets of a store with their health, and what was measured last."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from nephoscope.core.model import Finding, Severity, gravest_first
from nephoscope.core.records import dataclass
from nephoscope.serve.answers import result_changed_ns, stored_result
from nephoscope.store import FAILED, FINISHED, MEASURED, RUNNING, Store, StoredRun
from nephoscope.store.holder import INTERRUPTED, KILLED
from nephoscope.store.index import IndexedRun, Snapshot
from nephoscope.store.listing import StoredRunRow

MAX_TARGETS = 200
MAX_RECENT = 10
MAX_FINDINGS = 3
MAX_RESULTS = 1000
"""Runs of which the findings are remembered."""

Health = Literal["measuring", "ok", "warning", "failed", "lost", "unknown"]


@dataclass(frozen=True, slots=True)
class TargetHealth:
    """A target. health: of its newest run, in one word; reason: a sentence for it.

    findings: the most severe ones of its newest finished run, `verdict_run`.
    """

    name: str
    kind: str
    health: Health
    reason: str
    runs: int
    last_run: str
    last_at: str | None
    verdict_run: str | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """A store at a glance. runs: all of them; runs_read: of which this is made. states: how many
    runs are in each. targets: the most recently measured ones first; targets_total: all of them.
    benchmarks, plans: names that occur, for filters. damaged: a sentence for each unreadable run.
    """

    store: str
    runs: int
    runs_read: int
    states: Mapping[str, int]
    running: tuple[StoredRunRow, ...]
    recent: tuple[StoredRunRow, ...]
    targets: tuple[TargetHealth, ...]
    targets_total: int
    benchmarks: tuple[str, ...]
    plans: tuple[str, ...]
    damaged: tuple[str, ...]


@lru_cache(maxsize=MAX_RESULTS)
def _findings(path: Path, changed_ns: int | None) -> tuple[Finding, ...]:
    """Returns the most severe findings of a run; empty where it has no intact result.

    changed_ns: time of change of its result, which only tells versions apart.
    """
    text = stored_result(StoredRun(path))
    if text is None:
        return ()
    try:
        values: list[dict[str, Any]] = json.loads(text)["findings"]
        findings = [
            Finding(**{**value, "severity": Severity(value["severity"])}) for value in values
        ]
    except (ValueError, LookupError, TypeError):
        return ()
    return tuple(gravest_first(findings)[:MAX_FINDINGS])


def overview(snapshot: Snapshot, store: Store) -> Overview:
    """Returns the overview of a list of runs."""
    newest: dict[str, IndexedRun] = {}
    reported: dict[str, IndexedRun] = {}
    counts: Counter[str] = Counter()
    benchmarks: Counter[str] = Counter()
    plans: Counter[str] = Counter()
    for run in snapshot.runs:
        benchmarks.update(run.benchmarks)
        if run.row.plan:
            plans[run.row.plan] += 1
        for name in run.row.targets:
            counts[name] += 1
            newest.setdefault(name, run)
            if run.row.state == FINISHED:
                reported.setdefault(name, run)
    chosen = list(newest)[:MAX_TARGETS]
    rows = [run.row for run in snapshot.runs]
    return Overview(
        store=store.address,
        runs=snapshot.total,
        runs_read=len(rows),
        states=Counter(row.state for row in rows),
        running=tuple(row for row in rows if row.state == RUNNING)[:MAX_RECENT],
        recent=tuple(rows[:MAX_RECENT]),
        targets=tuple(
            _target(name, newest[name], reported.get(name), counts[name], store) for name in chosen
        ),
        targets_total=len(newest),
        benchmarks=tuple(sorted(benchmarks)),
        plans=tuple(name for name, _ in plans.most_common(MAX_TARGETS)),
        damaged=snapshot.damaged[:MAX_TARGETS],
    )


def _target(
    name: str, run: IndexedRun, reported: IndexedRun | None, runs: int, store: Store
) -> TargetHealth:
    verdicts: tuple[Finding, ...] = ()
    if reported is not None:
        path = store.runs_path / reported.row.id
        verdicts = _findings(path, result_changed_ns(StoredRun(path)))
    health, reason = _health(name, run, verdicts)
    return TargetHealth(
        name=name,
        kind=run.kinds.get(name, ""),
        health=health,
        reason=reason,
        runs=runs,
        last_run=run.row.id,
        last_at=run.row.started_at,
        verdict_run=None if reported is None else reported.row.id,
        findings=verdicts,
    )


def _health(name: str, run: IndexedRun, verdicts: Iterable[Finding]) -> tuple[Health, str]:
    if name in run.lost:
        return "lost", run.lost[name]
    if run.row.state == RUNNING:
        return "measuring", "A run is in progress."
    if run.row.state in (FAILED, KILLED, INTERRUPTED):
        return "failed", f"The state of the newest run is: {run.row.state}."
    if run.row.state not in (FINISHED, MEASURED):
        return "unknown", f"The state of the newest run is: {run.row.state}."
    severe = [verdict for verdict in verdicts if verdict.severity is Severity.WARNING]
    if severe:
        return "warning", severe[0].sentence
    return "ok", "The newest run ended, and no finding is a warning."
