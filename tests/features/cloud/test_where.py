"""Run here, keep the data there: against the closed form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nephoscope.core.errors import UsageError
from nephoscope.core.model import Estimate
from nephoscope.features.cloud.distance_records import (
    CloudDistances,
    PlaceDistance,
    PlacePrice,
    PlaceSpeed,
)
from nephoscope.features.cloud.where import PlacedJob, WhereRow, decide, total
from nephoscope.features.cloud.where_section import section

GIB = 2**30


def estimate(value: float, part: float = 0.1, unit: str = "bytes_per_s") -> Estimate:
    return Estimate(value, value * (1 - part), value * (1 + part), 0.95, 8, unit, "median")


def pair(a: str, b: str, there: float | None, back: float | None, way: str) -> PlaceDistance:
    made = [None if value is None else estimate(value) for value in (there, back)]
    return PlaceDistance(a, b, a, b, estimate(1e6), *made, way=way)


DISTANCES = CloudDistances(
    ("a", "b", "c"),
    (
        pair("a", "b", 100e6, 50e6, "public"),
        pair("a", "c", 10e6, None, "public"),
        pair("b", "c", 20e6, 20e6, "private"),
    ),
    speeds=tuple(
        PlaceSpeed(place, "cpu.pi", "digits", is_time=False, estimate=estimate(speed, 0.05))
        for place, speed in (("a", 1.0), ("b", 4.0), ("c", 2.0))
    ),
    prices=(
        PlacePrice("a", 0.1, 0.09, "USD"),
        PlacePrice("b", 0.3, 0.05, "USD", per_gib_zones=0.02),
        PlacePrice("c", 0.2, None, "USD"),
    ),
)


def rows(job: PlacedJob, distances: CloudDistances = DISTANCES) -> dict[tuple[str, str], WhereRow]:
    return {(row.run_at, row.data_at): row for row in decide(distances, job).rows}


def test_time_and_cost_are_transfer_and_computation() -> None:
    made = rows(PlacedJob(100 * GIB, "a", {"a": 36000.0}))
    assert set(made) == {("a", "a"), ("b", "a"), ("c", "a")}
    stay, away = made["a", "a"], made["b", "a"]
    assert stay.time_s is not None
    assert (stay.time_s.value, stay.time_s.low) == (36000.0, None)
    assert away.transfer_s is not None
    assert away.time_s is not None
    assert away.cost is not None
    transfer, compute = 100 * GIB / 100e6, 9000.0
    assert away.transfer_s.value == pytest.approx(transfer)
    assert away.compute_s.value == pytest.approx(compute)
    assert away.time_s.value == pytest.approx(transfer + compute)
    assert away.cost.value == pytest.approx((transfer + compute) / 3600 * 0.3 + 100 * 0.09)
    assert away.transfer_s.low == pytest.approx(transfer / 1.1)
    assert away.transfer_s.high == pytest.approx(transfer / 0.9)
    below = ((transfer - transfer / 1.1) ** 2 + (compute - away.compute_s.low) ** 2) ** 0.5  # type: ignore[operator]
    assert away.time_s.low == pytest.approx(transfer + compute - below)
    assert away.time_s.n == 8


def test_the_direction_of_the_data_counts() -> None:
    made = rows(PlacedJob(GIB, "b", {"a": 100.0, "b": 100.0, "c": 100.0}))
    there = made["a", "b"].transfer_s
    assert there is not None
    assert there.value == pytest.approx(GIB / 50e6)
    # Between zones of a region traffic has a price of its own.
    near = made["c", "b"]
    assert near.cost is not None
    assert near.time_s is not None
    assert near.cost.value == pytest.approx(near.time_s.value / 3600 * 0.2 + 0.02)
    back = rows(PlacedJob(GIB, "c", {"a": 1.0, "b": 1.0, "c": 1.0}))["b", "c"]
    assert (back.cost, back.missing) == (None, "The price of traffic from c to b is unknown.")
    job = PlacedJob(GIB, "c", {"a": 1.0, "b": 1.0, "c": 1.0}, per_gib_zones={"c": 0.0})
    assert rows(job)["b", "c"].cost is not None


def test_what_was_not_measured_is_missing_and_named() -> None:
    decided = decide(DISTANCES, PlacedJob(GIB, "c", {"a": 1.0, "b": 1.0, "c": 1.0}))
    made = {row.run_at: row for row in decided.rows}
    assert made["a"].time_s is None
    assert made["a"].transfer_s is None
    assert made["a"].cost is None
    assert "The goodput from c to a was not measured." in decided.notes
    assert decided.rows[-1].run_at == "a"
    dear = decide(
        replace(DISTANCES, prices=()), PlacedJob(GIB, "a", {"a": 1.0, "b": 1.0, "c": 1.0})
    )
    assert {row.cost for row in dear.rows} == {None}
    assert len(dear.verdicts) == 1
    assert "The price of an hour at b is unknown." in dear.notes


def test_the_verdict_comes_first_and_says_what_cannot_be_told() -> None:
    decided = decide(DISTANCES, PlacedJob(100 * GIB, "a", {"a": 36000.0}))
    fastest, cheapest = decided.verdicts
    assert fastest.startswith("Data at a: fastest at b, with the data kept at a: 2.80 h [")
    assert "next a (where the data are): 10.0 h" in fastest or "next c" in fastest
    assert cheapest.startswith("Data at a: cheapest at a, where the data are: 1.00 USD")
    close = decide(DISTANCES, PlacedJob(GIB, "a", {"a": 20.8, "b": 10.0, "c": 1e4}))
    assert "cannot be told from it" in close.verdicts[0]
    every = decide(DISTANCES, PlacedJob(GIB, "", {"a": 1.0, "b": 1.0, "c": 1.0}))
    assert [text.split(":")[0] for text in every.verdicts[::2]] == [
        f"Data at {place}" for place in "abc"
    ]
    page = section(decided)
    assert page.blocks[0].text == fastest  # type: ignore[union-attr]


def test_prices_of_the_user_stand_before_those_of_the_run() -> None:
    job = PlacedJob(GIB, "a", {"a": 3600.0, "b": 3600.0, "c": 3600.0}, "", {"a": 5.0}, {"a": 0.0})
    made = rows(job)
    stay, away = made["a", "a"].cost, made["b", "a"].cost
    assert stay is not None
    assert away is not None
    assert stay.value == 5.0
    assert away.value == pytest.approx((3600 + GIB / 100e6) / 3600 * 0.3)


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (PlacedJob(1, "d", {"a": 1.0}), "The run has no place 'd'"),
        (PlacedJob(1, "a", {"d": 1.0}), "The run has no place 'd'"),
        (PlacedJob(1, "a", {"a": 1.0}, "", {"d": 1.0}), "The run has no place 'd'"),
        (PlacedJob(1, "a", {"a": 1.0}, "cpu.hash"), "no speeds by 'cpu.hash'"),
        (PlacedJob(1, "a", {}), "How long the job computes at a is unknown"),
    ],
)
def test_bad_questions_are_one_sentence(job: PlacedJob, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        decide(DISTANCES, job)


def test_of_several_benchmarks_one_is_chosen() -> None:
    more = replace(DISTANCES.speeds[0], benchmark="disk.io")
    both = replace(DISTANCES, speeds=(*DISTANCES.speeds, more))
    with pytest.raises(UsageError, match="speeds by 2 benchmarks: "):
        decide(both, PlacedJob(1, "a", {"a": 1.0}))
    assert rows(PlacedJob(1, "a", {"a": 8.0}, "cpu.pi"), both)[
        "b", "a"
    ].compute_s.value == pytest.approx(2.0)


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_of_estimates_add_in_squares(sign: int) -> None:
    first, second = estimate(100.0, 0.03, "s"), estimate(50.0, 0.08, "s")
    made = total(first, second, sign)
    assert made.value == 100 + sign * 50
    assert made.low == pytest.approx(made.value - 5.0)
    assert made.high == pytest.approx(made.value + 5.0)
    exact: Any = replace(first, low=None, high=None)
    assert total(exact, exact).low is None
