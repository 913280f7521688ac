"""What came of executing a group once: records without behaviour, judged elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nephoscope.runs.schedule.alternatives import LOST
from nephoscope.runs.trials.phases import PhaseFailed
from nephoscope.runs.trials.target_pool import TargetLost
from nephoscope.store.trialfile import Beside
from nephoscope.targets import TargetTrial


@dataclass(slots=True)
class GroupResult:
    """What a group brought back.

    trials: target -> what it measured; missing where it was not reached. failure: why nothing was
    measured. broken: what happened besides, for which no trial of the group counts: code and
    sentence. beside, documents: of loads and hooks, by the target whose trial keeps them.
    loads, timeline, skew_ns: as in TrialRecord. notes: for every trial of the group. lost: the
    target that did not answer any more.
    """

    trials: dict[str, TargetTrial] = field(default_factory=dict)
    failure: PhaseFailed | None = None
    broken: list[tuple[str, str]] = field(default_factory=list)
    beside: dict[str, list[Beside]] = field(default_factory=dict)
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    loads: tuple[Mapping[str, Any], ...] = ()
    timeline: dict[str, tuple[int, int]] = field(default_factory=dict)
    skew_ns: int | None = None
    notes: list[str] = field(default_factory=list)
    started_at: float = 0.0
    elapsed_ns: int = 0
    lost: TargetLost | None = None

    @property
    def failure_name(self) -> str:
        """The name of what went wrong first; empty when nothing did."""
        if self.lost is not None:
            return LOST
        if self.failure is not None:
            return self.failure.name
        failed = [trial.failure.name for trial in self.trials.values() if trial.failure]
        return failed[0] if failed else self.broken[0][0] if self.broken else ""

    def keep(self, owner: str, rows: Beside, documents: Mapping[str, Any]) -> None:
        """Keeps what a load or a hook counted with the trial of `owner`."""
        if rows.samples:
            self.beside.setdefault(owner, []).append(rows)
        for name, document in documents.items():
            mark = "/".join(str(value) for value in rows.factors.values())
            key = f"{mark}/{rows.spec.id}/{name}"
            self.documents.setdefault(owner, {})[key] = document
