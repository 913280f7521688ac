"""Fleets that the simulator draws: the spread of the saving, for each of its strategies."""

from __future__ import annotations

import asyncio

from nephoscope.catalog import instruments
from nephoscope.core.errors import RunFailed
from nephoscope.features.cost.saving import SavingAnalysis, SimulatedFleets, scenario_of
from nephoscope.measure.targets.simulated import SEED, SimTarget
from nephoscope.stats.statistics.histograms import quantile_of_counts

STRATEGIES = ("trial_and_failure", "stopping", "replacement")
REPLACEMENTS = 1_000
"""Fleets under replacement, of which each is reviewed hour by hour: they take a hundred times as
long."""
_TIMEOUT_S = 300.0


def simulate(analysis: SavingAnalysis, fleets: int, seed: int = 1) -> list[SimulatedFleets]:
    """Returns the results of each strategy. Raises RunFailed where the simulator refuses."""
    return asyncio.run(_simulate(analysis, fleets, seed))


async def _simulate(analysis: SavingAnalysis, fleets: int, seed: int) -> list[SimulatedFleets]:
    target = SimTarget()
    await target.open()
    try:
        return [await _strategy(target, analysis, name, fleets, seed) for name in STRATEGIES]
    finally:
        await target.close()


async def _strategy(
    target: SimTarget, analysis: SavingAnalysis, strategy: str, fleets: int, seed: int
) -> SimulatedFleets:
    import json

    import numpy as np

    count = min(fleets, REPLACEMENTS) if strategy == "replacement" else fleets
    scenario = json.dumps(scenario_of(analysis, strategy, count))
    trial = await target.run(
        instruments.SIM_SELECTION, {"scenario": scenario, SEED: seed}, _TIMEOUT_S
    )
    if trial.failure is not None:
        raise RunFailed(f"The simulation of {strategy} failed: {trial.failure}")
    scalars = {sample.metric: sample.value for sample in trial.samples}
    steps = [sample for sample in trial.samples if sample.metric == "fleet_saving_ratio"]
    values = np.array([sample.value for sample in steps])
    counts = np.array([sample.count for sample in steps])
    low, high = (quantile_of_counts(values, counts, q) for q in (0.05, 0.95))
    return SimulatedFleets(
        strategy,
        count,
        scalars["cost_usd"],
        scalars["baseline_cost_usd"],
        scalars["saving_ratio"],
        low,
        high,
        scalars["losing_fleets_ratio"],
    )
