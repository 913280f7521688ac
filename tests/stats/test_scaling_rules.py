"""Rules of autoscalers against decisions that were computed by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from nephoscope.stats.scaling_rules import (
    Fixed,
    Observation,
    Predictive,
    ResponseTime,
    ScalingMemory,
    ScalingPolicy,
    ScalingRule,
    Schedule,
    Step,
    TargetTracking,
    Threshold,
    decide,
)

EMPTY = ScalingMemory()


def seen(count: int, time_s: float = 0.0, **metrics: float | None) -> Observation:
    return Observation(
        time_s=time_s,
        desired_count=int(metrics.pop("desired", None) or count),
        ready_count=count,
        **metrics,
    )


def wanted(rule: ScalingRule, observation: Observation) -> int:
    return decide(ScalingPolicy(rule), observation, EMPTY).desired_count


@pytest.mark.parametrize(
    ("rule", "observation", "count"),
    [
        # Kubernetes' documentation: ceil(current * metric / target), with a tolerance of 0.1.
        (TargetTracking(target=0.5), seen(4, utilisation_ratio=1.0), 8),
        (TargetTracking(target=0.5), seen(4, utilisation_ratio=0.25), 2),
        (TargetTracking(target=0.5), seen(4, utilisation_ratio=0.55), 4),
        (TargetTracking(target=0.5), seen(4, utilisation_ratio=0.56), 5),
        (TargetTracking("queue", 2.0), seen(3, queue_length=18.0), 9),
        (TargetTracking("rate", 50.0), seen(3, rate_per_s=300.0), 6),
        # What starts already is not cancelled by a metric above its target, nor asked for twice.
        (TargetTracking(target=0.5), seen(2, desired=6, utilisation_ratio=1.0), 6),
        (Threshold(), seen(4, utilisation_ratio=0.9), 5),
        (Threshold(), seen(4, utilisation_ratio=0.8), 4),
        (Threshold(), seen(4, utilisation_ratio=0.39), 3),
        (Threshold(), seen(3, desired=4, utilisation_ratio=0.39), 4),
        (Threshold("queue", 1.0, 0.1), seen(4, queue_length=12.0), 12),
        (Step(), seen(4, utilisation_ratio=0.7), 5),
        (Step(), seen(4, utilisation_ratio=0.95), 7),
        (Step(), seen(4, utilisation_ratio=0.3), 3),
        (Step(), seen(4, desired=5, utilisation_ratio=0.3), 5),
        (Step(steps=((0.7, 25.0),), percent=True), seen(5, utilisation_ratio=0.7), 7),
        (Schedule(((28_800.0, 10), (64_800.0, 4))), seen(1, 28_800.0), 10),
        (Schedule(((28_800.0, 10), (64_800.0, 4))), seen(1, 86_400.0 + 100), 4),
        (Fixed(7), seen(1), 7),
        (Fixed(), seen(3), 3),
        # Error 2 at most: 10 + 10 * (0.2 * 2 + 0.1 * 2).
        (ResponseTime(0.2), seen(10, response_time_s=60.0), 16),
        (ResponseTime(0.2), seen(10, response_time_s=0.2), 10),
        (ResponseTime(0.2), seen(10, response_time_s=0.1), 8),
    ],
)
def test_decisions_are_those_computed_by_hand(
    rule: ScalingRule, observation: Observation, count: int
) -> None:
    assert wanted(rule, observation) == count


@pytest.mark.parametrize(
    "rule", [Threshold(), TargetTracking(), Step(), ResponseTime(), Predictive()]
)
def test_a_missing_metric_changes_nothing_and_is_named(rule: ScalingRule) -> None:
    decision = decide(ScalingPolicy(rule), seen(5), EMPTY)
    assert decision.desired_count == 5
    assert "is missing" in decision.reason


def test_bounds_hold_for_every_rule() -> None:
    policy = ScalingPolicy(Fixed(50), min_count=2, max_count=9)
    assert decide(policy, seen(5), EMPTY).desired_count == 9
    assert decide(replace(policy, rule=Fixed(1)), seen(5), EMPTY).desired_count == 2


def test_cooldowns_count_from_the_last_change() -> None:
    policy = ScalingPolicy(TargetTracking(target=0.5), cooldown_out_s=60, cooldown_in_s=120)
    first = decide(policy, seen(2, 0.0, utilisation_ratio=1.0), EMPTY)
    assert first.desired_count == 4
    again = decide(policy, seen(4, 30.0, utilisation_ratio=1.0), first.memory)
    assert (again.desired_count, "cooldown" in again.reason) == (4, True)
    later = decide(policy, seen(4, 60.0, utilisation_ratio=1.0), again.memory)
    assert later.desired_count == 8
    back = decide(policy, seen(8, 179.0, utilisation_ratio=0.1), later.memory)
    assert back.desired_count == 8
    assert decide(policy, seen(8, 180.0, utilisation_ratio=0.1), back.memory).desired_count == 2


def test_stabilisation_keeps_the_largest_recommendation_of_its_window() -> None:
    policy = ScalingPolicy(TargetTracking(target=0.5), stabilisation_in_s=100)
    memory, counts, count = EMPTY, [], 8
    for time_s, utilisation in ((0, 0.5), (40, 0.25), (80, 0.3), (100, 0.25), (141, 0.25)):
        observation = seen(count, float(time_s), utilisation_ratio=utilisation)
        decision = decide(policy, observation, memory)
        count, memory = decision.desired_count, decision.memory
        counts.append(count)
    # Recommended: 8, 4, 5, 4 of 8 at 100 s (the 5 of 80 s holds), then 3 of 5 (the 5 is not past).
    assert counts == [8, 8, 8, 5, 5]


def test_a_forecast_continues_a_line_and_repeats_a_day() -> None:
    rule = Predictive(per_instance_per_s=10, horizon_s=300, window_s=600, period_s=0)
    memory, count = EMPTY, 1
    for minute in range(11):
        observation = seen(count, 60.0 * minute, rate_per_s=20.0 + 6 * minute)
        decision = decide(ScalingPolicy(rule), observation, memory)
        count, memory = decision.desired_count, decision.memory
    # 80/s now, 6/s more a minute: 110/s in five minutes.
    assert count == 11
    daily = replace(rule, period_s=3600.0)
    memory = EMPTY
    for minute in range(57):
        rate = 95.0 if 0 <= minute < 5 else 20.0
        decision = decide(ScalingPolicy(daily), seen(2, 60.0 * minute, rate_per_s=rate), memory)
        memory = decision.memory
    # At minute 56 the forecast is for minute 61, which is minute 1 of the next hour.
    assert decision.desired_count == 10


def test_a_refused_level_does_not_wind_up() -> None:
    policy = ScalingPolicy(ResponseTime(0.2), max_count=4)
    memory, count = EMPTY, 4
    for second in range(50):
        decision = decide(policy, seen(count, float(second), response_time_s=9.0), memory)
        count, memory = decision.desired_count, decision.memory
    assert memory.level is not None
    assert memory.level < 8
    assert count == 4
    low = decide(policy, seen(4, 51.0, response_time_s=0.02), memory)
    assert low.desired_count < 4


def test_the_memory_holds_no_more_than_its_windows() -> None:
    rule = Predictive(window_s=60, period_s=0)
    memory = EMPTY
    for second in range(500):
        memory = decide(
            ScalingPolicy(rule, stabilisation_in_s=30),
            seen(1, float(second), rate_per_s=1.0),
            memory,
        ).memory
    assert len(memory.rates) <= 62
    assert len(memory.recommendations) == 30
    assert memory.last_change_s == -math.inf
