"""What the checks measure with: this package's own probe inside a lab's hosts."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from nephoscope.core.errors import RunFailed
from nephoscope.measure.lab.handle import Lab
from nephoscope.measure.labcheck.frame import CheckMeasurement
from nephoscope.measure.targets import session
from nephoscope.measure.targets.base import TargetTrial
from nephoscope.measure.targets.lab import LabTarget
from nephoscope.stats.statistics import means

TIMEOUT_S = 60.0
_LEAD_NS = 100_000_000
"""How far ahead a common start is: a message to each host takes a few milliseconds."""


@asynccontextmanager
async def open_hosts(lab: Lab, *hosts: str) -> AsyncIterator[list[LabTarget]]:
    """Opens hosts of a lab as targets, and closes them at the end of the block."""
    targets = [LabTarget(host, lab.name, host) for host in hosts]
    try:
        await asyncio.gather(*(target.open(TIMEOUT_S) for target in targets))
        yield targets
    finally:
        await asyncio.gather(*(target.close() for target in targets), return_exceptions=True)


async def trials(
    lab: Lab, host: str, benchmark: str, params: Sequence[Mapping[str, Any]]
) -> list[TargetTrial]:
    """One trial after the other inside a host; failed ones are returned as such."""
    async with open_hosts(lab, host) as (target,):
        return [await target.run(benchmark, param, TIMEOUT_S) for param in params]


async def together(
    lab: Lab, hosts: Sequence[str], benchmark: str, params: Mapping[str, Any]
) -> list[TargetTrial]:
    """The same trial in every host at one moment."""
    async with open_hosts(lab, *hosts) as targets:
        sides = [
            await session.prepare(target, benchmark, params, deadline_s=TIMEOUT_S)
            for target in targets
        ]
        await session.go(sides, _LEAD_NS)
        return list(await asyncio.gather(*(side.running.result(TIMEOUT_S) for side in sides)))


def require_success(trial: TargetTrial) -> None:
    """RunFailed with the reason of a trial that failed."""
    if trial.failure is not None:
        raise RunFailed(f"The probe failed: {trial.failure.message}", trial.failure.hint)


def value(trial: TargetTrial, metric: str) -> float:
    """Sum of a metric's samples in a trial that went well; RunFailed with its reason otherwise."""
    require_success(trial)
    values = [sample.value for sample in trial.samples if sample.metric == metric]
    if not values:
        raise RunFailed(f"The probe brought no {metric}.", "Build both together: `make survey`.")
    return math.fsum(values)


def mean(values: Sequence[float], note: str = "", **more: float) -> CheckMeasurement:
    """Mean of independent trials with its t interval (95 %)."""
    seen = means.summary(values)
    half = means.t_quantile(seen.n - 1, 0.95) * seen.s / math.sqrt(seen.n)
    return CheckMeasurement(seen.mean, seen.mean - half, seen.mean + half, seen.n, note, more)
