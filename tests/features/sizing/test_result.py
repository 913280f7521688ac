"""A planted world, worlds with too thin data, and what the answer is made of."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.features.sizing import worlds
from tests.features.sizing.made import answer, one, shop

from nephoscope.features.sizing import application
from nephoscope.features.sizing.result import analyse
from nephoscope.stats.redundancy import spares_needed


def test_a_planted_world_gets_a_deployment_that_holds_and_costs_little_more(tmp_path: Path) -> None:
    world = worlds.draw_world(3, types_in_all=2, places=2)
    file = worlds.write(worlds.measured(world), tmp_path)
    best = analyse(application.load(file, tmp_path)).deployments[0]
    kind = world.types[best.type]
    assert worlds.kept_ratio(world, kind, best.counts, 400) >= worlds.KEPT
    assert worlds.cost(kind, best.counts) <= 1.1 * worlds.clairvoyant(world, 200)[0]


def test_exact_values_give_the_closed_form(tmp_path: Path) -> None:
    # A tiny spread: m instances serve 900 / m each, and 400 + 92.1 are served at most (M/M/1). Two
    # miss the limit, three have 192.1 spare: e^(-192.1 * 0.05) are late.
    values = shop(types=one(spread=1e-9), availability="99.9%", instance_availability="99.5%")
    analysis = answer(tmp_path, values)
    best = analysis.deployments[0]
    spare = spares_needed(3, 0.995, 0.999)
    assert (best.counts, best.spare) == ({"eu": 3 + spare}, {"eu": spare})
    assert best.cost_per_month.value == pytest.approx(730 * 0.1 * (3 + spare))
    assert best.miss_probability.value == 0
    assert analysis.sentence.startswith(f"{3 + spare} a/one in eu: ")


@pytest.mark.parametrize(
    ("changes", "reason", "measurement"),
    [
        (
            {"types": one(spread=None)},
            "how much instances of a/one differ is not known",
            "the spread of a/one",
        ),
        ({"types": one(capacity_per_s=None)}, "the capacity of a/one is not known", "the capacity"),
        ({"types": one(price_per_h=None)}, "the price of a/one in eu is not known", "price list"),
        ({"availability": "99.9%"}, "the availability of instances of a/one", "`sla`"),
        (
            {"users": {"x": 1}},
            "no region with a price of a/one has round trips from all users",
            "round trips to a region of a/one",
        ),
        (
            {
                "users": {"x": 1},
                "regions": {"eu": {"rtt_ms": {"x": 2}}, "us": {}},
                "types": one(price_per_h=None, regional_price_per_h={"us": 0.1}),
            },
            "no region with a price of a/one has round trips from all users",
            "round trips to a region of a/one",
        ),
        (
            {"types": one(capacity_per_s={"value": 400, "low": 60, "high": 2600})},
            "three times as many as the values alone need",
            "the capacity of a/one",
        ),
        (
            {"types": one(spread={"value": "20%", "low": "4%", "high": "95%"})},
            "three times as many as the values alone need",
            "the spread of a/one",
        ),
    ],
)
def test_thin_data_are_named_with_what_to_measure(
    changes: dict[str, object], reason: str, measurement: str, tmp_path: Path
) -> None:
    analysis = answer(tmp_path, shop(**changes))
    assert not analysis.is_answered
    assert not analysis.deployments
    assert "too thin to recommend a deployment" in analysis.sentence
    assert reason in analysis.sentence
    assert measurement in analysis.recommended_measurement
    assert analysis.recommended_measurement.startswith(("Measure ", "State the "))


def test_round_trips_beyond_the_limit_are_no_matter_of_data(tmp_path: Path) -> None:
    values = shop(users={"x": 1}, regions={"eu": {"rtt_ms": {"x": 60}}})
    analysis = answer(tmp_path, values)
    assert "No deployment keeps p99 < 50ms, with up to 2,000 instances" in analysis.sentence
    assert not analysis.unknown


def test_users_far_away_get_a_region_of_their_own(tmp_path: Path) -> None:
    values = shop(
        demand={"rate_per_s": 4000},
        users={"dublin": "50%", "tokyo": "50%"},
        regions={
            "eu": {"rtt_ms": {"dublin": 2, "tokyo": 230}},
            "jp": {"rtt_ms": {"dublin": 230, "tokyo": 3}},
        },
    )
    best = answer(tmp_path, values).deployments[0]
    assert best.served_from == {"dublin": "eu", "tokyo": "jp"}
    assert set(best.counts) == {"eu", "jp"}
    assert abs(best.counts["eu"] - best.counts["jp"]) <= 1


def test_what_is_open_is_worth_a_measurement(tmp_path: Path) -> None:
    types = {
        "a/known": {
            "capacity_per_s": {"value": 400, "low": 396, "high": 404},
            "spread": "2%",
            "price_per_h": 0.1,
        },
        "a/open": {
            "capacity_per_s": {"value": 400, "low": 250, "high": 640},
            "spread": "2%",
            "price_per_h": 0.085,
        },
    }
    analysis = answer(tmp_path, shop(demand={"rate_per_s": 9000}, types=types))
    assert analysis.deployments[0].type == "a/known"
    first = analysis.measurements[0]
    assert first.name == "the capacity of a/open"
    assert (first.change_probability or 0) > 0.3
    assert first.saving_per_month > first.cost
    assert "Measure the capacity of a/open next" in analysis.recommended_measurement


_PAIR = {
    "demand": {"rate_per_s": 900},
    "users": {"x": "50%", "y": "50%"},
    "regions": {
        "one": {"rtt_ms": {"x": 1e-6, "y": 2e-6}},
        "two": {"rtt_ms": {"x": 2e-6, "y": 1e-6}},
    },
    "types": one(spread=1e-9),
    "availability": "99.9%",
    "instance_availability": "99.9999999%",
}


@pytest.mark.parametrize(
    ("region", "counts"),
    [
        # Three instances hold all of 900 requests per second, and two half of them.
        (None, {"one": 3}),
        ("99.99%", {"one": 3}),
        ("99.8%", {"one": 3, "two": 3}),
    ],
)
def test_regions_survive_failures_that_the_goal_does_not_leave(
    region: str | None, counts: dict[str, int], tmp_path: Path
) -> None:
    analysis = answer(tmp_path, shop(**_PAIR, region_availability=region))
    best = analysis.deployments[0]
    assert best.counts == counts
    assert best.survived_failures == len(counts) - 1
    assert best.cost_per_month.value == pytest.approx(73 * sum(counts.values()))
    assert ("while a region fails" in analysis.sentence) == (len(counts) > 1)


def test_data_to_users_are_paid_where_they_leave(tmp_path: Path) -> None:
    regions = {
        name: {**_PAIR["regions"][name], "egress_price_per_gb": price}
        for name, price in (("one", {"value": 0.09, "low": 0.08, "high": 0.1}), ("two", 0.05))
    }
    volume = {"value": 10_000, "low": 9_000, "high": 12_000}
    values = shop(**{**_PAIR, "regions": regions}, egress_gb_per_month=volume)
    first, *more = answer(tmp_path, values).deployments
    cost = first.cost_per_month
    assert (first.counts, first.egress_per_month) == ({"two": 3}, 500)
    assert (cost.value, cost.low, cost.high) == pytest.approx((719, 669, 819))
    dear = next(each for each in more if each.counts == {"one": 3})
    assert dear.egress_per_month == 900
    # The errors of 10,000 GB and of their price are independent.
    low = dear.cost_per_month.value - (100**2 + 90**2) ** 0.5
    assert dear.cost_per_month.low == pytest.approx(low)


def test_intervals_of_prices_are_those_of_the_cost(tmp_path: Path) -> None:
    price = {"value": 0.1, "low": 0.09, "high": 0.12}
    best = answer(tmp_path, shop(types=one(price_per_h=price))).deployments[0]
    cost, count = best.cost_per_month, best.counts["eu"]
    assert (cost.low, cost.high) == pytest.approx((730 * count * 0.09, 730 * count * 0.12))


def test_distribution_by_speed_needs_no_more_instances(tmp_path: Path) -> None:
    values = shop(demand={"rate_per_s": 20_000}, types=one(spread="15%"))
    equal, dynamic = (
        answer(tmp_path, {**values, "balancing": name}).deployments[0].counts["eu"]
        for name in ("equal", "dynamic")
    )
    assert dynamic < equal
