"""A store of drawn runs, and what a history says of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tests.features.history.drawn import DAY_S, START_S
from tests.results.made import NULL_PLAN, make_run

from nephoscope.core.model import Sample, Setting
from nephoscope.features.compaction.reading import StoredSummaries
from nephoscope.features.history.series import Series, read
from nephoscope.store import Store, StoredRun
from nephoscope.store.selection import Selection

METRICS = ("null_ns", "null_per_s", "null_latency_p50_ns", "null_latency_p95_ns")
NOW_S = START_S + 100 * DAY_S


def drawn_run(
    store: Path,
    at_s: float,
    *,
    seed: int = 1,
    labels: dict[str, str] | None = None,
    plan: str = NULL_PLAN,
    rounds: int = 8,
) -> StoredRun:
    """A finished run of eight valid trials with scalars and a latency histogram."""
    rng = np.random.default_rng(seed)

    def samples(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        latencies = np.round(rng.lognormal(7, 0.4, 200))
        return [
            *(Sample("null_ns", float(one)) for one in rng.lognormal(4, 0.1, 3)),
            Sample("null_per_s", float(rng.lognormal(4, 0.1))),
            *(Sample("null_latency_ns", float(one), 3, 1) for one in latencies),
        ]

    run = make_run(store, plan, samples, rounds=rounds, invalid=(2,))
    run.update(started_at=at_s, labels=labels or {})
    return run


def history(store: Path, metric: str = "null_latency_p95_ns", **options: float) -> list[Series]:
    series, notes = read(every_summary(store), metric, **options)
    assert not notes
    return series


def trials_of(run: StoredRun) -> list[Path]:
    """The files with samples, the last trial's first."""
    return sorted(run.trials_path.glob("*.parquet"), reverse=True)


def every_summary(store: Path) -> StoredSummaries:
    return StoredSummaries(Store(store), Selection())


def every_history(store: Path) -> list[list[Series]]:
    return [history(store, metric) for metric in METRICS]
