"""The plan of `cloud distances`, and the matrices of its result."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nephoscope.core.errors import UsageError
from nephoscope.core.model import Estimate
from nephoscope.features.cloud import distance_section
from nephoscope.features.cloud.distance_matrix import analyse
from nephoscope.features.cloud.distance_records import CloudDistances
from nephoscope.features.cloud.distances import (
    TRANSFER_BYTES,
    ZONES_BYTES,
    DistanceRequest,
    pairs_of,
    plan_of,
)
from nephoscope.features.cloud.places import place_of
from nephoscope.measure.targets.kinds.rented import RentedRecord

SHARED = {"provider": "ec2", "type": "t", "image": "i"}


def record(*zones: str, **more: Any) -> RentedRecord:
    values = {"type": "t", "image": "i", **more}
    return RentedRecord.model_validate(
        {"name": "m", "provider": "ec2", "region": "r", "zone": list(zones), **values}
    )


def request(*records: RentedRecord, **more: Any) -> DistanceRequest:
    return DistanceRequest(records, 6, 1.0, **more)


def places(*texts: str) -> list[RentedRecord]:
    return [place_of(text, SHARED) for text in texts]


def test_each_pair_of_zones_is_measured_in_both_directions() -> None:
    plan = plan_of(request(record("a", "b", "c")), budget=600)
    ends = [(entry.on, entry.peer, entry.params.get("direction")) for entry in plan.benchmarks]
    pairs = [("m-a", "m-b"), ("m-a", "m-c"), ("m-b", "m-c")]
    assert ends == [
        ((far,), near, direction) for near, far in pairs for direction in (None, "up", "down")
    ]
    flows = [entry for entry in plan.benchmarks if entry.benchmark == "net.throughput"]
    assert {entry.params["transfer_bytes"] for entry in flows} == {ZONES_BYTES}


def test_between_zones_whose_traffic_is_free_a_trial_takes_a_set_time() -> None:
    plan = plan_of(request(record("a", "b", per_gib_zones=0)), budget=600)
    assert {entry.params.get("transfer_bytes") for entry in plan.benchmarks} == {None}
    assert all("duration_ns" in entry.params for entry in plan.benchmarks)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (record("a"), "need two places or more, not 1"),
        (record("a", "b", type=["t", "u"]), "one machine in each place, not 4 in 2"),
    ],
)
def test_too_few_places_are_one_sentence(made: RentedRecord, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        pairs_of(request(made))


def test_between_regions_a_set_amount_is_carried_whose_price_is_known() -> None:
    plan = plan_of(request(*places("r/a", "r/b", "s")), budget=600)
    flows = [entry for entry in plan.benchmarks if entry.benchmark == "net.throughput"]
    carried = [entry.params["transfer_bytes"] for entry in flows]
    assert carried == [ZONES_BYTES] * 2 + [TRANSFER_BYTES] * 4
    own = plan_of(request(*places("r", "s"), transfer_bytes=1000, streams=4), budget=600)
    assert {entry.params.get("transfer_bytes") for entry in own.benchmarks} == {None, 1000}
    assert {entry.params.get("streams") for entry in own.benchmarks} == {None, 4}


def test_kinds_of_placement_are_pairs_within_each_place() -> None:
    made = record("a", "b", placement=["none", "cluster"], count=2)
    pairs = [(first.name, second.name) for first, second in pairs_of(request(made))]
    assert pairs == [
        (f"m-{zone}-{kind}-1", f"m-{zone}-{kind}-2")
        for zone in ("a", "b")
        for kind in ("none", "cluster")
    ]


def estimate(value: float, n: int = 6) -> Estimate:
    return Estimate(value, 0.9 * value, 1.1 * value, 0.95, n, "ns", "median")


def line(metric: str, target: str, value: float, **factors: str) -> SimpleNamespace:
    return SimpleNamespace(
        metric=metric,
        target=target,
        factors=factors,
        estimate=estimate(value),
        headline=False,
        benchmark="net.rtt",
        better="lower",
    )


def data_of(asked: DistanceRequest, lines: list[Any], records: list[Any] | None = None) -> Any:
    plan = plan_of(asked, budget=600).model_dump(mode="json")
    manifest = SimpleNamespace(plan=plan, rented={})
    return SimpleNamespace(manifest=manifest, metrics=lines, records=records or [])


@pytest.mark.parametrize("zones", [("a", "b"), ("a", "b", "c")])
def test_the_matrix_has_each_direction_where_it_belongs(zones: tuple[str, ...]) -> None:
    peers = len(zones) > 2
    lines = []
    for far in range(1, len(zones)):
        for near in range(far):
            ends = {"peer": f"m-{zones[near]}"} if peers else {}
            target, pair = f"m-{zones[far]}", 10.0 * near + far
            lines.append(line("rtt_p50_ns", target, pair, **ends))
            lines.append(line("goodput_bytes_per_s", target, pair + 100, direction="up", **ends))
            lines.append(line("goodput_bytes_per_s", target, pair + 200, direction="down", **ends))
    found = analyse(data_of(request(record(*zones)), lines))
    assert found is not None
    assert len(found.pairs) == len(zones) * (len(zones) - 1) / 2
    for one in found.pairs:
        assert one.rtt is not None
        assert one.goodput is not None
        assert one.goodput_back is not None
        pair = 10.0 * zones.index(one.place_a) + zones.index(one.place_b)
        # `up` goes from the target of the trial, which is the farther zone, to its peer.
        values = (one.rtt.value, one.goodput.value, one.goodput_back.value)
        assert values == (pair, pair + 200, pair + 100)
        assert one.way == "private"
        assert one.missing == ""


def test_a_pair_without_a_valid_trial_is_named_and_never_zero() -> None:
    asked = request(*places("r/a", "r/b", "s"))
    dead = SimpleNamespace(
        factors={"peer": "a"}, key=SimpleNamespace(target="s"), benchmark="net.rtt",
        reasons=("No probe was answered.",),
    )  # fmt: skip
    lines = [line("rtt_p50_ns", "b", 5.0, peer="a"), line("rtt_p50_ns", "s", 9.0, peer="b")]
    found = analyse(data_of(asked, lines, [dead]))
    assert found is not None
    ways = {(one.place_a, one.place_b): one.way for one in found.pairs}
    assert ways == {("a", "b"): "private", ("a", "s"): "public", ("b", "s"): "public"}
    result: Any = SimpleNamespace(part=lambda kind: found if kind is CloudDistances else None)
    text = distance_section.text_of(result)
    assert "a and s: not every figure was measured. No probe was answered." in text
    row = next(one for one in text.splitlines() if one.startswith("a - s: round trip"))
    assert row.split() == ["a", "-", "s:", "round", "trip", "p50", "no", "value", "none", "0"]
    assert "Nearest: a and b" in text
    section = distance_section.build(result)
    assert section is not None
    assert section.title == "Distances between places"


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (4.0, "brings the round trip from 10.0 ns to 4.00 ns: ratio 0.4 ["),
        (9.9, "shows no difference in the round trip from 10.0 ns to 9.90 ns"),
        (20.0, "changes the round trip from 10.0 ns to 20.0 ns: ratio 2 ["),
    ],
)
def test_a_placement_group_is_said_with_its_ratio(after: float, words: str) -> None:
    asked = request(record("a", placement=["none", "cluster"], count=2))
    lines = [
        line("rtt_p50_ns", "m-none-2", 10.0, peer="m-none-1"),
        line("rtt_p50_ns", "m-cluster-2", after, peer="m-cluster-1"),
    ]
    found = analyse(data_of(asked, lines))
    assert found is not None
    (effect,) = found.effects
    assert effect.rtt_ratio.value == pytest.approx(after / 10)
    sentence = distance_section.sentence_of(effect)
    assert sentence.startswith(f"a: the cluster placement group {words}")
    assert sentence.endswith("n = 6.")


def test_a_run_of_anything_else_has_no_distances() -> None:
    data: Any = SimpleNamespace(manifest=SimpleNamespace(plan={"name": "x"}, rented={}))
    assert analyse(data) is None
