"""Rules of the reference autoscaler: their formulae by hand, limits and cooldowns."""

from __future__ import annotations

import pytest

from nephoscope.autoscalers.rules import (
    Decision,
    Observation,
    Rule,
    Scaler,
    rule_of,
    wanted_of,
)


def seen(value: float | None, present: int = 2, ready: int = 2, at_s: float = 0.0) -> Observation:
    return Observation(at_s, present, ready, value)


def test_target_tracking_is_the_formula_of_the_hpa() -> None:
    rule = Rule(metric="cpu", target=0.5, maximum=9)
    # ceil(2 * 0.9 / 0.5) = 4; within 10 % nothing changes; machines that boot count as present.
    assert wanted_of(rule, seen(0.9)) == 4
    assert wanted_of(rule, seen(0.54)) == 2
    assert wanted_of(rule, seen(0.1)) == 1
    assert wanted_of(rule, seen(1.0, present=4, ready=2)) == 4
    assert wanted_of(rule, seen(None, present=3)) == 3


def test_steps_have_a_band_in_which_nothing_changes() -> None:
    rule = Rule(policy="step", metric="queue", down_at=1, up_at=4, step=2)
    assert [wanted_of(rule, seen(value)) for value in (0.5, 1, 4, 4.1)] == [0, 2, 2, 4]


def test_a_prediction_follows_the_line_of_the_rates() -> None:
    rule = Rule(policy="predictive", metric="rate", target=10, history_s=2, horizon_s=3)
    rising = tuple((float(at_s), 10.0 * at_s) for at_s in range(1, 5))
    # 40/s at 4 s, 10/s more each second: 70/s at 7 s.
    assert wanted_of(rule, Observation(4, 4, 4, 10.0, rising)) == 7
    # A falling rate is not followed below what arrives now.
    falling = tuple((float(at_s), 50.0 - 10 * at_s) for at_s in range(1, 5))
    assert wanted_of(rule, Observation(4, 4, 4, 10.0, falling)) == 1


def test_a_schedule_needs_no_metric() -> None:
    rule = rule_of({"policy": "schedule", "schedule": [[0, 1], [60, 3]], "maximum": 3})
    assert [wanted_of(rule, seen(None, at_s=at_s)) for at_s in (0, 59, 60, 99)] == [1, 1, 3, 3]


def test_limits_are_stated_as_the_reason() -> None:
    scaler = Scaler(Rule(metric="queue", target=1, minimum=1, maximum=3))
    assert scaler.decide(seen(5)) == Decision(10, 3, "maximum")
    assert scaler.decide(seen(0)) == Decision(0, 1, "minimum")


@pytest.mark.parametrize(
    ("at_s", "value", "desired"), [(9, 2, 2), (10, 2, 4), (19, 0.5, 2), (20, 0.5, 1)]
)
def test_cooldowns_count_from_the_last_change(at_s: float, value: float, desired: int) -> None:
    rule = Rule(metric="queue", target=1, maximum=9, cooldown_out_s=10, cooldown_in_s=20)
    scaler = Scaler(rule)
    assert scaler.decide(seen(2, present=1, ready=1)).desired == 2
    assert scaler.decide(seen(value, at_s=at_s)).desired == desired
