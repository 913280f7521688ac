"""The targets of a store with headline results and health, and what was measured last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from nephoscope.core.model import Finding, Severity
from nephoscope.serve.answers import result_changed_ns
from nephoscope.serve.run_metrics import NamedEstimate
from nephoscope.serve.stored_headlines import stored_findings, stored_headlines
from nephoscope.store import FAILED, FINISHED, MEASURED, RUNNING, Store, StoredRun
from nephoscope.store.holder import INTERRUPTED, KILLED
from nephoscope.store.index import IndexedRun, Snapshot
from nephoscope.store.listing import StoredRunRow

MAX_TARGETS = 200
MAX_RECENT = 10
TREND_RUNS = 250
"""Newest finished runs of a target that its trends show: enough to be tested for changes."""
MAX_TREND_RUNS = 10_000
"""Of all targets together."""
MAX_PLANS = 5
"""Plans of a target whose newest results are shown."""
REPORT_ATTEMPTS = 3
"""Newest finished runs of a plan that are looked at for a report."""
UNSUCCESSFUL = (FAILED, KILLED, INTERRUPTED)
"""States of runs that stand apart from the newest ones."""

Health = Literal["measuring", "ok", "warning", "failed", "lost", "unknown"]


@dataclass(frozen=True, slots=True)
class TargetHealth:
    """A target. health: of its newest run, in one word; reason: a sentence for it.

    findings: the most severe ones of its newest finished run, `verdict_run`. headlines: the newest
    results that stand in summaries of reports, of several plans.
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
    headlines: tuple[NamedEstimate, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """A store at a glance.

    runs: all of them; runs_read: of which this is made. states: how many runs are in each. recent:
    the newest runs but for those that failed or were cut off; failed: the newest of these. targets:
    the most recently measured ones first; targets_total: all of them. benchmarks, plans: names that
    occur, for filters. damaged: a sentence for each unreadable run.
    """

    store: str
    runs: int
    runs_read: int
    states: Mapping[str, int]
    running: tuple[StoredRunRow, ...]
    recent: tuple[StoredRunRow, ...]
    failed: tuple[StoredRunRow, ...]
    targets: tuple[TargetHealth, ...]
    targets_total: int
    benchmarks: tuple[str, ...]
    plans: tuple[str, ...]
    damaged: tuple[str, ...]


def overview(snapshot: Snapshot, store: Store) -> Overview:
    """Returns the overview of a list of runs."""
    newest: dict[str, IndexedRun] = {}
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
    chosen = list(newest)[:MAX_TARGETS]
    reported = reported_runs(snapshot, store)
    rows = [run.row for run in snapshot.runs]
    return Overview(
        store=store.address,
        runs=snapshot.total,
        runs_read=len(rows),
        states=Counter(row.state for row in rows),
        running=tuple(row for row in rows if row.state == RUNNING)[:MAX_RECENT],
        recent=tuple(row for row in rows if row.state not in UNSUCCESSFUL)[:MAX_RECENT],
        failed=tuple(row for row in rows if row.state in UNSUCCESSFUL)[:MAX_RECENT],
        targets=tuple(
            _target(name, newest[name], reported.get(name, ()), counts[name], store)
            for name in chosen
        ),
        targets_total=len(newest),
        benchmarks=tuple(sorted(benchmarks)),
        plans=tuple(name for name, _ in plans.most_common(MAX_TARGETS)),
        damaged=snapshot.damaged[:MAX_TARGETS],
    )


def reported_runs(snapshot: Snapshot, store: Store) -> dict[str, list[str]]:
    """Returns the newest finished run with a report of each plan of each target, newest first."""
    chosen: dict[str, list[str]] = {}
    attempts: Counter[tuple[str, str]] = Counter()
    for run in snapshot.runs:
        if run.row.state != FINISHED:
            continue
        for name in run.row.targets:
            key = (name, run.row.plan or "")
            own = chosen.setdefault(name, [])
            if attempts[key] >= REPORT_ATTEMPTS or len(own) >= MAX_PLANS:
                continue
            attempts[key] += 1
            if result_changed_ns(StoredRun(store.runs_path / run.row.id)) is not None:
                own.append(run.row.id)
                attempts[key] = REPORT_ATTEMPTS
    return chosen


def trend_runs(snapshot: Snapshot) -> dict[str, list[IndexedRun]]:
    """Returns the newest finished runs of each target of an overview, newest first."""
    chosen: dict[str, list[IndexedRun]] = {}
    names: set[str] = set()
    total = 0
    for run in snapshot.runs:
        for name in run.row.targets:
            if name not in names and len(names) >= MAX_TARGETS:
                continue
            names.add(name)
            own = chosen.setdefault(name, [])
            if run.row.state == FINISHED and len(own) < TREND_RUNS and total < MAX_TREND_RUNS:
                own.append(run)
                total += 1
    return {name: own for name, own in chosen.items() if own}


def _target(
    name: str, run: IndexedRun, reported: Sequence[str], runs: int, store: Store
) -> TargetHealth:
    verdicts: tuple[Finding, ...] = ()
    if reported:
        path = store.runs_path / reported[0]
        verdicts = stored_findings(path, result_changed_ns(StoredRun(path)))
    health, reason = _health(name, run, verdicts)
    return TargetHealth(
        name=name,
        kind=run.kinds.get(name, ""),
        health=health,
        reason=reason,
        runs=runs,
        last_run=run.row.id,
        last_at=run.row.started_at,
        verdict_run=next(iter(reported), None),
        findings=verdicts,
        headlines=tuple(stored_headlines(store, reported, name)),
    )


def _health(name: str, run: IndexedRun, verdicts: Iterable[Finding]) -> tuple[Health, str]:
    if name in run.lost:
        return "lost", run.lost[name]
    if run.row.state == RUNNING:
        return "measuring", "A run is in progress."
    if run.row.state in UNSUCCESSFUL:
        return "failed", f"The state of the newest run is: {run.row.state}."
    if run.row.state not in (FINISHED, MEASURED):
        return "unknown", f"The state of the newest run is: {run.row.state}."
    severe = [verdict for verdict in verdicts if verdict.severity is Severity.WARNING]
    if severe:
        return "warning", severe[0].sentence
    return "ok", "The newest run ended, and no finding is a warning."
