"""Trials of real tools on loopback."""

from __future__ import annotations

import asyncio
from typing import Any

from nephoscope.catalog.adapters import ADAPTERS
from nephoscope.measure.targets import parse, session
from nephoscope.measure.targets.base import TargetTrial

DEADLINE_S = 600
"""For tools that hang. 7-Zip's fixed work takes 13 s of two free CPUs, and five times that beside
a load of 16."""


def measured(benchmark: str, params: dict[str, Any]) -> tuple[TargetTrial, dict[str, Any]]:
    """Returns a valid trial, and what its server counted, where it has one."""

    async def run() -> tuple[TargetTrial, TargetTrial | None]:
        target = parse("local").make()
        try:
            await target.open()
            if ADAPTERS[benchmark].server is None:
                return await target.run(benchmark, params, DEADLINE_S), None
            return await session.run_pair(target, target, benchmark, params, DEADLINE_S)
        finally:
            await target.close()

    trial, served = asyncio.run(run())
    assert trial.failure is None, trial.failure
    if served is None:
        return trial, {}
    assert served.failure is None, served.failure
    assert served.done is not None
    return trial, dict(served.done.served)


def values(trial: TargetTrial) -> dict[str, float]:
    """Returns the trial's figures by name."""
    return {sample.metric: sample.value for sample in trial.samples}
