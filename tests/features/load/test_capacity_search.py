"""The interval of a capacity covers the rate at which half of the trials meet the objective."""

from __future__ import annotations

import math
import random

import pytest

from nephoscope.features.load.capacity_search import Capacity, RateRange, estimate, next_rates
from nephoscope.features.load.records import TrialOutcome

AMONG = RateRange(100.0, 100_000.0)


def search(true_rate: float, width: float, seed: int, most: int = 60) -> Capacity:
    """Searches on a server whose trials pass along a logistic curve of this width."""
    rng = random.Random(seed)
    outcomes: list[TrialOutcome] = []
    while True:
        for rate in next_rates(outcomes, AMONG) * 2:
            distance = math.log(true_rate / rate) / width
            met = rng.random() < 1 / (1 + math.exp(min(500.0, -distance)))
            outcomes.append(TrialOutcome(rate, met))
        found = estimate(outcomes, AMONG, 0.95)
        if found.relative_width <= 0.05 or len(outcomes) >= most:
            return found


def covered(width: float, searches: int, first_seed: int) -> float:
    hits = 0
    for seed in range(first_seed, first_seed + searches):
        true_rate = math.exp(random.Random(-seed).uniform(math.log(300), math.log(30_000)))
        found = search(true_rate, width, seed)
        hits += found.low <= true_rate <= found.high
    return hits / searches


def test_a_sharp_limit_is_found_within_few_trials() -> None:
    found = search(4321.0, 0.003, seed=1)
    assert found.low <= 4321 <= found.high
    assert found.relative_width <= 0.05
    assert found.n <= 42
    assert not found.reaches_low_end
    assert not found.reaches_high_end


def test_the_interval_covers() -> None:
    # At a coverage of 95 %, fewer than 10 of 12 have a probability of 0.02.
    assert covered(0.05, 12, first_seed=1000) >= 10 / 12


@pytest.mark.slow
@pytest.mark.parametrize("width", [0.003, 0.02, 0.1, 0.3])
def test_the_interval_covers_as_often_as_it_promises(width: float) -> None:
    # Two standard errors of 500 searches below 95 %.
    assert covered(width, 500, first_seed=5000) >= 0.93


@pytest.mark.parametrize(("met", "end"), [(True, "high"), (False, "low")])
def test_a_capacity_outside_of_the_range_is_told(met: bool, end: str) -> None:
    outcomes = [TrialOutcome(rate, met) for rate in (200.0, 2000.0, 20_000.0) * 4]
    found = estimate(outcomes, AMONG, 0.95)
    assert found.reaches_high_end == (end == "high")
    assert found.reaches_low_end == (end == "low")


def test_one_disturbed_trial_does_not_exclude_the_truth() -> None:
    rates = (500.0, 1000.0, 2000.0, 4000.0)
    outcomes = [TrialOutcome(rate, rate < 3000) for rate in rates * 3]
    before = estimate(outcomes, AMONG, 0.95)
    after = estimate([*outcomes, TrialOutcome(500.0, False)], AMONG, 0.95)
    assert after.low <= before.rate_per_s <= after.high
