"""The rules of the HorizontalPodAutoscaler against its documentation and the controller's tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from nephoscope.autoscalers.hpa import (
    AVERAGE,
    EXTERNAL,
    EXTERNAL_AVERAGE,
    UTILISATION,
    HpaDirection,
    HpaMetric,
    HpaPolicy,
    HpaSettings,
    HpaSync,
    PodUsage,
    PodView,
    wanted_of,
)
from nephoscope.autoscalers.hpa_replay import HpaReplay, deviations

DEFAULT_OUT = HpaDirection(0.0, (HpaPolicy("Pods", 4, 15.0), HpaPolicy("Percent", 100, 15.0)))
DEFAULT_BACK = HpaDirection(300.0, (HpaPolicy("Percent", 100, 15.0),))


def settings(
    kind: str = UTILISATION,
    target: int = 50,
    *,
    is_cpu: bool = True,
    out: HpaDirection = DEFAULT_OUT,
    back: HpaDirection = DEFAULT_BACK,
    maximum: int = 100,
) -> HpaSettings:
    return HpaSettings(1, maximum, (HpaMetric(kind, target, is_cpu),), out, back)


def sync(
    levels: Sequence[int],
    *,
    current: int = 0,
    at_s: float = 1000.0,
    request: int = 1000,
    starting: Sequence[int] = (),
    missing: int = 0,
) -> HpaSync:
    """Pods with these usages in thousandths of a CPU, of which some are not ready; `missing` ones
    have no usage."""
    count = len(levels) + missing
    pods = [
        PodView(
            f"p{n}", request, is_ready=n not in starting, started_s=at_s - 10, since_s=at_s - 10
        )
        for n in range(count)
    ]
    usages = {f"p{n}": PodUsage(level, at_s) for n, level in enumerate(levels)}
    return HpaSync(at_s, current or count, pods, [usages])


# Cases of replica_calculator_test.go in release 1.34: its name there, usage, target, which pods are
# not ready, pods without a metric, and the number expected.
CONTROLLER = (
    ("ScaleUp", [300, 500, 700], 30, (), 0, 5),
    ("ScaleUpUnreadyLessScale", [300, 500, 700], 30, (0,), 0, 4),
    ("ScaleUpUnreadyNoScale", [400, 500, 700], 30, (1, 2), 0, 3),
    ("ScaleDown", [100, 300, 500, 250, 250], 50, (), 0, 3),
    ("ScaleDownExcludeUnreadyPods", [100, 300, 500, 250, 250], 50, (3, 4), 0, 2),
    ("Tolerance", [1010, 1030, 1020], 100, (), 0, 3),
    ("MissingMetrics", [400, 95], 100, (), 2, 3),
    ("MissingMetricsNoChangeEq", [1000], 100, (), 1, 2),
    ("MissingMetricsNoChangeGt", [1900], 100, (), 1, 2),
    ("MissingMetricsNoChangeLt", [600], 100, (), 1, 2),
    ("MissingMetricsUnreadyChange", [100, 450], 50, (0,), 1, 3),
    ("MissingMetricsUnreadyScaleUp", [100, 2000], 50, (0,), 1, 4),
    ("MissingMetricsUnreadyScaleDown", [100, 100, 100], 50, (0,), 1, 3),
)


@pytest.mark.parametrize("case", CONTROLLER, ids=lambda case: case[0])
def test_pods_count_as_in_the_tests_of_the_controller(
    case: tuple[str, list[int], int, tuple[int, ...], int, int],
) -> None:
    _, levels, target, starting, missing, expected = case
    seen = sync(levels, starting=starting, missing=missing)
    assert wanted_of(settings(target=target), seen) == expected


def test_the_documentation_s_examples_of_the_formula() -> None:
    """Current 200m with a target of 100m doubles the replicas, 50m halves them."""
    assert wanted_of(settings(AVERAGE, 100), sync([200, 200])) == 4
    assert wanted_of(settings(AVERAGE, 100), sync([50, 50])) == 1
    assert wanted_of(settings(AVERAGE, 100), sync([109, 109])) == 2


def test_external_metrics() -> None:
    seen = HpaSync(0.0, 2, sync([0, 0]).pods, [45_000])
    assert wanted_of(settings(EXTERNAL, 30_000), seen) == 3
    assert wanted_of(settings(EXTERNAL_AVERAGE, 10_000), seen) == 5
    assert wanted_of(settings(EXTERNAL_AVERAGE, 21_000), seen) == 2  # 1.07, within the tolerance


def test_a_missing_metric_allows_no_scaling_in() -> None:
    two = replace(settings(), metrics=(HpaMetric(AVERAGE, 100), HpaMetric(EXTERNAL, 10)))
    low, high = ({f"p{n}": PodUsage(value, 0) for n in range(2)} for value in (20, 400))
    pods = sync([0, 0]).pods
    assert wanted_of(two, HpaSync(0.0, 2, pods, [low, None])) is None
    assert wanted_of(two, HpaSync(0.0, 2, pods, [high, None])) == 8
    assert wanted_of(two, HpaSync(0.0, 2, pods, [None, None])) is None
    assert HpaReplay(two).decide(HpaSync(0.0, 2, pods, [None, None])).allowed == {2}


def test_a_pod_of_which_no_whole_window_is_measured_does_not_count() -> None:
    seen = sync([900, 900], current=2)
    early = {name: replace(usage, window_s=30.0) for name, usage in seen.values[0].items()}  # type: ignore[union-attr]
    assert wanted_of(settings(), seen) == 4
    assert wanted_of(settings(), replace(seen, values=[early])) is None
    late = replace(seen, at_s=2000.0, values=[early])  # beyond the initialisation period
    assert wanted_of(settings(), late) == 4


def test_policies_bound_the_speed_and_without_behaviour_a_step_is_at_most_to_twice() -> None:
    def desired(own: HpaSettings, *ats: float) -> list[int]:
        replay, current, results = HpaReplay(own), 1, []
        for at_s in ats:
            (number,) = replay.decide(sync([2000] * current, at_s=at_s)).allowed
            replay.changed(at_s, number - current)
            results.append(current := number)
        return results

    assert desired(settings(target=10), 0, 5, 16) == [5, 5, 10]
    plain = HpaDirection(0.0)
    assert desired(settings(target=10, out=plain, back=HpaDirection(300.0)), 0, 5) == [4, 8]
    slow = HpaDirection(0.0, (HpaPolicy("Pods", 1, 10.0), HpaPolicy("Percent", 50, 10.0)), "Min")
    assert desired(settings(target=10, out=slow), 0, 5, 11) == [2, 2, 3]
    still = HpaDirection(0.0, DEFAULT_OUT.policies, "Disabled")
    assert desired(settings(target=10, out=still), 0, 60) == [1, 1]
    decision = HpaReplay(settings(target=10, maximum=3)).decide(sync([2000]))
    assert (decision.wanted, decision.allowed, decision.reason) == (20, {3}, "maximum")


def test_the_largest_recommendation_of_the_window_holds() -> None:
    replay = HpaReplay(settings(back=replace(DEFAULT_BACK, window_s=60.0)))
    assert replay.decide(sync([600] * 4, at_s=0)).allowed == {5}
    low = [10] * 5
    held = replay.decide(sync(low, at_s=30))
    assert (held.wanted, held.allowed, held.reason) == (1, {5}, "stabilisation")
    assert replay.decide(sync(low, at_s=61)).allowed == {1}


def test_a_decision_that_does_not_follow_is_named_and_a_window_s_end_is_not_held_against_it() -> (
    None
):
    own = settings(back=replace(DEFAULT_BACK, window_s=60.0))
    busy, idle = [600] * 4, [10] * 5
    good = [([sync(busy, at_s=0)], 5), ([sync(idle, at_s=30)], 5), ([sync(idle, at_s=61)], 1)]
    assert deviations(own, good, 0.25) == []
    # At 60.1 s the first recommendation has just left the window, or not yet.
    for decided in (1, 5):
        assert not deviations(own, [*good[:2], ([sync(idle, at_s=60.1)], decided)], 0.25)
    (wrong,) = deviations(own, [*good[:2], ([sync(idle, at_s=61)], 3)], 0.25)
    assert wrong.text() == (
        "At 61.0 s the HPA went from 5 to 3 replicas, where its formula leads to 1."
    )
    early = deviations(own, [good[0], ([sync(idle, at_s=30)], 1)], 0.25)
    assert [each.decided for each in early] == [1]
