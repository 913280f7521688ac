"""Further policies of the reference autoscaler, against decisions that were computed by hand."""

from __future__ import annotations

import pytest

from nephoscope.autoscalers import rules
from nephoscope.autoscalers.rules import Scaler, ScalingObservation, ScalingRule, wanted_of

CPU_STEPS = ScalingRule(policy=rules.STEP, steps=((0.3, -1), (0.7, 1), (0.9, 3)), maximum=20)
CONTROL = ScalingRule(rules.RESPONSE_TIME, rules.CONTROL, 0.2, gain=0.5, maximum=99)
DAY = ScalingRule(policy=rules.SCHEDULE, schedule=((28_800, 10), (64_800, 4)), period_s=86_400)
TRACKING = ScalingRule(target=0.5, maximum=99)


def seen(
    present: int, value: float | None, at_s: float = 0.0, ready: int = 0
) -> ScalingObservation:
    return ScalingObservation(at_s, present, ready or present, value)


@pytest.mark.parametrize(
    ("rule", "observation", "count"),
    [
        # Kubernetes' documentation: ceil(current * metric / target), with a tolerance of 0.1.
        (TRACKING, seen(4, 1.0), 8),
        (TRACKING, seen(4, 0.25), 2),
        (TRACKING, seen(4, 0.549), 4),
        (TRACKING, seen(4, 0.56), 5),
        (CPU_STEPS, seen(4, 0.71), 5),
        (CPU_STEPS, seen(4, 0.95), 7),
        (CPU_STEPS, seen(4, 0.5), 4),
        (CPU_STEPS, seen(4, 0.29), 3),
        (DAY, seen(1, None, 28_800.0), 10),
        (DAY, seen(1, None, 86_400.0 + 100), 4),
        (ScalingRule(policy=rules.FIXED), seen(3, 9.0), 3),
        # Half of the relative error, which is 2 at most: 10 + 10 * 0.5 * 2.
        (CONTROL, seen(10, 60.0), 20),
        (CONTROL, seen(10, 0.2), 10),
        (CONTROL, seen(10, 0.1), 8),
        (CONTROL, seen(10, 0.17), 9),
        # What starts already is neither requested twice nor cancelled.
        (CONTROL, seen(20, 60.0, ready=10), 20),
        (CONTROL, seen(20, 0.1, ready=10), 20),
    ],
)
def test_decisions_are_those_computed_by_hand(
    rule: ScalingRule, observation: ScalingObservation, count: int
) -> None:
    assert wanted_of(rule, observation) == count


def test_stabilisation_keeps_the_largest_number_of_its_window() -> None:
    scaler = Scaler(ScalingRule(target=0.5, maximum=99, stabilisation_in_s=100))
    counts, count = [], 8
    for at_s, value in ((0, 0.5), (40, 0.25), (80, 0.3), (100, 0.25), (141, 0.25)):
        decision = scaler.decide(seen(count, value, at_s))
        count = decision.desired
        counts.append((count, decision.reason))
    # Wanted: 8, 4, 5 and 4 of 8; the 8 counts until 100 s, the 5 beyond 141 s, when 3 are wanted.
    held = "stabilisation"
    assert counts == [(8, ""), (8, held), (8, held), (5, held), (5, held)]


def test_a_forecast_repeats_the_last_period() -> None:
    rule = ScalingRule(
        policy=rules.PREDICTIVE,
        target=10,
        history_s=600,
        horizon_s=300,
        period_s=3600,
        maximum=99,
    )
    rates = [(60.0 * minute, 95.0 if minute < 5 else 20.0) for minute in range(57)]
    # At minute 56 the forecast is for minute 61, which is minute 1 of the next hour.
    assert wanted_of(rule, ScalingObservation(3360.0, 2, 2, None, rates)) == 10
    # Without a period only the line counts: 80/s now, 6/s more a minute.
    line = [(60.0 * minute, 20.0 + 6 * minute) for minute in range(11)]
    plain = ScalingRule(
        policy=rules.PREDICTIVE, target=10, history_s=600, horizon_s=300, maximum=99
    )
    assert wanted_of(plain, ScalingObservation(600.0, 2, 2, None, line)) == 11
