"""Runs of a store as rows of a list: the document of `nephoscope runs --json`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from nephoscope.core.records import dataclass
from nephoscope.store.run import StoredRun


@dataclass(frozen=True, slots=True)
class StoredRunRow:
    """A run of the store. spent_s: measured time; targets: their names."""

    id: str
    plan: str | None
    state: str
    started_at: str | None
    spent_s: float | None
    trials: int
    targets: tuple[str, ...]
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StoredRuns:
    """Runs of a store, newest first."""

    store: str
    runs: tuple[StoredRunRow, ...]


def row_of(stored: StoredRun) -> StoredRunRow:
    """Returns the row of a run. Raises StoreError where its manifest cannot be read."""
    manifest = stored.manifest
    return StoredRunRow(
        id=stored.id,
        plan=manifest.plan_name,
        state=stored.status,
        started_at=moment_text(manifest.started_at),
        spent_s=manifest.spent_s,
        trials=stored.trial_count(with_warmup=False),
        targets=manifest.target_names,
        labels=stored.labels,
    )


def moment_text(seconds: float | None) -> str | None:
    """Returns a time since the epoch as ISO 8601 in UTC, whole seconds."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
