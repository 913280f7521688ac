"""The seed of what a trial draws, from that of its run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nephoscope.catalog import BenchmarkSpec, instruments
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
    The reference autoscaler is no error but a part of the laboratory: rules of a round that meet
    other delays, or the load at another phase of their decisions, differ by a fifth for that alone.
    """
    if params.get(SEED) or not (is_simulated or spec.draws):
        return params
    is_shared = is_simulated or spec.id == instruments.AUTOSCALER_REFERENCE
    alternative = () if is_shared else (str(setting.index), target)
    return {**params, SEED: plans.trial_seed(seed, round, *alternative)}
