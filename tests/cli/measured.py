"""Commands that measure, answered by a run that is stored already."""

from __future__ import annotations

from typing import Any

import pytest
from tests.features.migration import made as migrations
from tests.features.platforms.made import report

from nephoscope.cli.kit import measuring
from nephoscope.features.load import capacity_command
from nephoscope.features.load.capacity import CapacityStage, StagePlan
from nephoscope.features.load.records import TrialOutcome
from nephoscope.features.migration.measure import MigrationMeasurement
from nephoscope.features.migration.records import MigrationReport
from nephoscope.features.platforms.measure import PlatformMeasurement
from nephoscope.features.platforms.records import PlatformReport
from nephoscope.measure.plans import Plan
from nephoscope.store import Store, StoredRun


def answer_with(stored: StoredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every command that measures take the run for its own."""

    def executed(plan: Plan, store: Store, *, fresh: bool = False, **more: Any) -> StoredRun:
        return stored

    def measured(server: Any, plan: StagePlan) -> CapacityStage:
        server.runs.append(stored.id)
        rates = [*plan.rates_per_s] * plan.rounds
        return CapacityStage([TrialOutcome(rate, rate < 500) for rate in rates], 0)

    async def drawn(measurement: PlatformMeasurement) -> PlatformReport:
        return report()

    async def migrated(measurement: MigrationMeasurement) -> MigrationReport:
        return migrations.report()

    monkeypatch.setattr(measuring, "executed", executed)
    monkeypatch.setattr(capacity_command._Server, "closed_loop_per_s", lambda server, *more: 1000.0)
    monkeypatch.setattr(capacity_command._Server, "measure", measured)
    monkeypatch.setattr(PlatformMeasurement, "run", drawn)
    monkeypatch.setattr(MigrationMeasurement, "run", migrated)
