"""How often two rules are told apart by the requests that miss the objective, by simulation.

A round is ten minutes of a simulated service, whose arrivals, work and observed metrics are drawn.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.rates import holds_rate

from nephoscope.autoscalers.rules import RATE, ScalingRule
from nephoscope.core.model import Better
from nephoscope.stats import compare
from nephoscope.stats.elasticity import StepFunction
from nephoscope.stats.instance_demand import ScaledService
from nephoscope.stats.queueing import ResponseObjective
from nephoscope.stats.scaled_service import simulate

pytestmark = pytest.mark.slow
LOAD = StepFunction((0.0, 120.0, 240.0, 360.0, 480.0), (60.0, 180.0, 60.0, 240.0, 60.0))
RULE = ScalingRule(RATE, target=35.0, maximum=10)
SERVICE = ScaledService(
    services_per_s=50.0,
    objective=ResponseObjective(0.2, 0.99),
    boot_s=10.0,
    warm_up_s=5.0,
    window_s=5.0,
    interval_s=5.0,
    start_count=2,
    service_cv=0.0,
    shared_queue=False,
)
PAIRS = 20
EXPERIMENTS = 100
ROUNDS = 400


def test_a_rule_that_is_worse_by_a_fifth_is_found_and_an_equal_one_is_not() -> None:
    """20 rounds of each rule: at most one equal pair in 20 differs, and nine of ten are found."""
    rates = np.array(
        [
            simulate(RULE, SERVICE, LOAD, 600.0, np.random.default_rng((1, number))).slow_ratio
            for number in range(ROUNDS)
        ]
    )
    assert 0.08 < rates.std() / rates.mean() < 0.2  # the noise between rounds that is to be borne
    rng = np.random.default_rng(2)

    def verdict(factor: float) -> str:
        drawn = rng.choice(rates, 2 * PAIRS, replace=False)
        comparison = compare.paired(
            drawn[:PAIRS].tolist(),
            (factor * drawn[PAIRS:]).tolist(),
            better=Better.LOWER,
            unit="ratio",
            confidence=0.95,
            names=("one", "another"),
        )
        return comparison.verdict.word

    equal = [verdict(1.0) for _ in range(EXPERIMENTS)]
    holds_rate("equal rules", [word not in ("better", "worse") for word in equal], 0.95)
    found = [verdict(1.2) == "worse" for _ in range(EXPERIMENTS)]
    holds_rate("worse by 20 %", found, 0.90)
