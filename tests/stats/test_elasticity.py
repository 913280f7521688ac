"""Measures of elasticity against values computed by hand, and against exhaustive search."""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, fields

import pytest

from nephoscope.stats import elasticity
from nephoscope.stats.elasticity import ScalingTimes, StepFunction
from nephoscope.stats.statistics.values import Refused

DEMAND = StepFunction((0, 10, 30), (2, 4, 2))
SUPPLY = StepFunction((0, 15, 20, 40), (2, 3, 5, 2))
"""Over 60 s: d - s is 2 for 5 s and 1 for 5 s; s - d is 1 for 10 s and 3 for 10 s."""


def test_measures_are_those_of_a_calculation_by_hand() -> None:
    got = elasticity.measures(SUPPLY, DEMAND, 0, 60)
    assert got.under_provisioned == pytest.approx((2 * 5 + 1 * 5) / 60)
    assert got.over_provisioned == pytest.approx((1 * 10 + 3 * 10) / 60)
    assert got.under_ratio == pytest.approx((2 / 4 * 5 + 1 / 4 * 5) / 60)
    assert got.over_ratio == pytest.approx((1 / 4 * 10 + 3 / 2 * 10) / 60)
    assert got.under_time_ratio == pytest.approx(10 / 60)
    assert got.over_time_ratio == pytest.approx(20 / 60)
    # Demand changes at 10 and 30, supply at 15, 20 and 40: five seconds of sixty, never both.
    assert got.instability_ratio == pytest.approx(5 / 60)
    assert got.opposed_ratio == 0
    assert got.jitter_per_min == pytest.approx(3 - 2)
    # Samples 20 s apart: the demand rises in the first and falls in the second, the supply rises
    # in the first and falls in the second.
    coarse = elasticity.measures(SUPPLY, DEMAND, 0, 60, sampling_s=20)
    assert coarse.instability_ratio == coarse.opposed_ratio == 0


def test_a_level_is_passed_by_the_step_after_which_it_stays_so() -> None:
    demand = StepFunction((0, 10, 20, 30, 40), (1, 3, 2, 4, 1))
    cases = {
        (1, 35, 1): 10, (2, 15, 1): 10, (2, 25, 1): None, (2, 35, 1): 30, (4, 35, 1): None,
        (0, 35, 1): None, (3, 45, -1): 40, (4, 25, -1): None, (3, 25, -1): 20, (1, 45, -1): None,
    }  # fmt: skip
    for (level, at_s, sign), since_s in cases.items():
        assert demand.beyond_since(level, at_s, sign) == since_s, (level, at_s, sign)


def test_instances_that_come_a_moment_apart_are_one_adaptation() -> None:
    demand = StepFunction((0, 10, 30), (1, 3, 1))
    supply = StepFunction((0, 14, 14.3, 34, 35.5, 36), (1, 2, 3, 2, 1, 2))
    # Out once; in at 34 and, more than a second later, at 35.5; out again at 36.
    assert elasticity.measures(supply, demand, 0, 60).jitter_per_min == 4 - 2


def test_opposite_changes_are_counted_and_a_perfect_supply_has_no_fault() -> None:
    falling = StepFunction((0, 10), (3, 1))
    rising = StepFunction((0, 10), (1, 3))
    got = elasticity.measures(falling, rising, 0, 20, sampling_s=5)
    assert (got.instability_ratio, got.opposed_ratio) == (0.25, 0.25)
    assert set(asdict(elasticity.measures(DEMAND, DEMAND, 0, 60)).values()) == {0}
    # Time without a demand has no ratio to it, and counts for the other measures.
    pause = StepFunction((0, 10), (0, 1))
    got = elasticity.measures(StepFunction((0,), (2,)), pause, 0, 20)
    assert (got.over_ratio, got.over_provisioned) == (1.0, 1.5)


def test_areas_do_not_depend_on_a_step_that_changes_nothing() -> None:
    twice = StepFunction((0, 5, 15, 20, 40, 50), (2, 2, 3, 5, 2, 2))
    assert elasticity.measures(twice, DEMAND, 0, 60) == elasticity.measures(SUPPLY, DEMAND, 0, 60)
    assert SUPPLY.area(0, 60) == 2 * 15 + 3 * 5 + 5 * 20 + 2 * 20
    assert SUPPLY.area(18, 22) == 3 * 2 + 5 * 2


def test_the_elastic_speed_up_is_a_geometric_mean() -> None:
    late = StepFunction((0, 20, 30, 40), (2, 3, 5, 2))
    got = elasticity.measures(SUPPLY, DEMAND, 0, 60)
    reference = elasticity.measures(late, DEMAND, 0, 60)
    # theta_U: 2/4 for 10 s and 1/4 for 10 s = 7.5 against 3.75; theta_O: 3/2 for 10 s = 15
    # against 17.5; tau_U: 20 s against 10 s; tau_O: 10 s against 20 s.
    by_hand = (7.5 / 3.75 * 15 / 17.5 * 20 / 10 * 10 / 20) ** 0.25
    assert elasticity.speed_up(reference, got) == pytest.approx(by_hand)
    assert elasticity.speed_up(got, got) == 1
    with pytest.raises(Refused, match="no value: under_ratio, "):
        elasticity.speed_up(got, elasticity.measures(DEMAND, DEMAND, 0, 60))


def test_an_oscillation_is_found_and_one_that_the_demand_explains_is_none() -> None:
    flat = StepFunction((0,), (2,))
    swinging = StepFunction(
        tuple(range(0, 100, 10)), tuple(2 + place % 2 for place in range(10))
    )  # up at 10, down at 20, ... up at 90
    (got,) = elasticity.oscillations(swinging, flat, 0, 100, reaction_s=5)
    assert (got.start_s, got.end_s, got.reversals) == (10, 90, 8)
    assert (got.period_s, got.amplitude) == (20, 1)
    # The same supply follows a demand that swings as it does, 3 s earlier.
    wanted = StepFunction((0, *(t - 3 for t in range(10, 100, 10))), swinging.counts)
    assert elasticity.oscillations(swinging, wanted, 0, 100, reaction_s=5) == ()
    # One wrong decision and its correction are none, nor is a staircase up and down again.
    corrected = StepFunction((0, 10, 20), (2, 3, 2))
    stairs = StepFunction((0, 10, 20, 30, 40), (1, 2, 3, 2, 1))
    for supply in (corrected, stairs):
        assert elasticity.oscillations(supply, flat, 0, 100, reaction_s=5) == ()


def test_bills_round_each_life_up() -> None:
    # Youngest first: of five the one of 15 and the two of 20 leave at 40.
    got = elasticity.lives(SUPPLY, 0, 60)
    assert sorted(got) == [(0, 60), (0, 60), (15, 40), (20, 40), (20, 40)]
    assert elasticity.billed_s(got) == SUPPLY.area(0, 60)
    assert elasticity.billed_s(got, 50) == 2 * 100 + 3 * 50
    assert elasticity.billed_s([(0, 60), (0, 61)], 60) == 60 + 120


def test_the_clairvoyant_minimum_is_that_of_an_exhaustive_search() -> None:
    assert elasticity.clairvoyant_billed_s(DEMAND, 0, 60) == DEMAND.area(0, 60)
    # By hand, units of 30 s: two from 0, two more from 10 to 40, two from 30 to 60.
    assert elasticity.clairvoyant_billed_s(DEMAND, 0, 60, 30) == 6 * 30
    # A gap shorter than a unit costs nothing, a longer one is not bridged.
    gap = StepFunction((0, 1, 3, 4), (1, 0, 1, 0))
    assert elasticity.clairvoyant_billed_s(gap, 0, 10, 5) == 5
    assert elasticity.clairvoyant_billed_s(gap, 0, 10, 2) == 4
    for counts in itertools.product(range(3), repeat=5):
        demand = StepFunction(tuple(map(float, range(5))), counts)
        got = elasticity.clairvoyant_billed_s(demand, 0, 5, 2)
        assert got == 2 * _fewest_units(counts, 2), counts


def _fewest_units(counts: tuple[int, ...], length: int) -> int:
    """The minimum number of intervals of this length that cover counts, over all starts."""
    best = math.inf
    for starts in itertools.product(range(3), repeat=len(counts)):
        covered = [
            sum(starts[max(0, place - length + 1) : place + 1]) for place in range(len(counts))
        ]
        if all(own >= count for own, count in zip(covered, counts, strict=True)):
            best = min(best, sum(starts))
    return int(best)


def test_segments_are_differences_of_times() -> None:
    times = ScalingTimes(1, 10, 12, 15, 15.5, 18.5, 20.5, 21, 21.25)
    assert times.segments_s() == {
        "metric_lag": 2, "decision": 3, "creation": 0.5, "boot": 3, "warm_up": 2, "rotation": 0.5,
        "first_response": 0.25,
    }  # fmt: skip
    assert times.total_s() == 11
    assert len(elasticity.SEGMENTS) == len(fields(times)) - 2
    unseen = ScalingTimes(-1, demanded_s=10, decided_s=15, in_rotation_s=16)
    assert set(unseen.segments_s().values()) == {None}
    assert unseen.total_s() == 6
    assert ScalingTimes(1).total_s() is None


def test_repetitions_have_intervals() -> None:
    shifted = [
        elasticity.measures(
            StepFunction((0, 15 + late, 20 + late, 40), (2, 3, 5, 2)), DEMAND, 0, 60
        )
        for late in (0, 1, 2, 4)
    ]
    got = elasticity.over_repetitions(shifted)
    assert list(got) == [field.name for field in fields(shifted[0])]
    times = got["under_time_ratio"]
    assert times.value == pytest.approx((10 + 11 + 12 + 14) / 4 / 60)
    # Student, 3 degrees of freedom: 3.1824 times s = 1.7078 over 2.
    assert times.low == pytest.approx(times.value - 3.18245 * 1.70783 / 2 / 60, rel=1e-4)
    assert (times.n, times.unit) == (4, "ratio")
    # Jitter has a sign: its interval is not cut at 0.
    rare = [elasticity.measures(SUPPLY, DEMAND, 0, end_s) for end_s in (60, 600, 61)]
    jitter = elasticity.over_repetitions(rare)["jitter_per_min"]
    assert jitter.low is not None
    assert jitter.low < 0 < min(each.jitter_per_min for each in rare)
    assert got["under_provisioned"].unit == "count"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: StepFunction((), ()), "at least one"),
        (lambda: StepFunction((0, 0), (1, 2)), "do not ascend"),
        (lambda: StepFunction((0,), (-1,)), "negative"),
        (lambda: StepFunction((0,), (math.nan,)), "not finite"),
        (lambda: elasticity.measures(SUPPLY, DEMAND, -1, 5), "begins at 0 s"),
        (lambda: elasticity.measures(SUPPLY, DEMAND, 5, 5), "no length"),
        (lambda: elasticity.measures(SUPPLY, DEMAND, 0, 5, sampling_s=9), "no interval of 9 s"),
        (lambda: elasticity.measures(SUPPLY, StepFunction((0,), (0,)), 0, 5), "0 throughout"),
        (lambda: elasticity.lives(StepFunction((0,), (0.5,)), 0, 5), "whole counts"),
    ],
)  # fmt: skip
def test_what_has_no_answer_is_refused(call: object, sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        call()  # type: ignore[operator]
