"""The seed of what a trial draws, from that of its run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nephoscope.catalog import BenchmarkSpec
from nephoscope.core.model import Setting
from nephoscope.measure import plans

SEED = "seed"
"""The parameter of a benchmark that draws random numbers."""


def with_seed(
    setting: Setting,
    params: Mapping[str, Any],
    spec: BenchmarkSpec,
    target: str,
    *,
    seed: int,
    round: int,
    is_simulated: bool = False,
) -> Mapping[str, Any]:
    """Returns the parameters of a trial, with a seed where it draws and the plan states none.

    seed: of the run. Simulated alternatives share the seed of their round, so that they differ in
    what was varied and not in their luck. Measured ones do not: their errors must be independent.
    """
    if params.get(SEED) or not (is_simulated or spec.draws):
        return params
    alternative = () if is_simulated else (str(setting.index), target)
    return {**params, SEED: plans.trial_seed(seed, round, *alternative)}
