"""The plan of `cloud distances`, and the matrix of its result."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nephoscope.core.errors import UsageError
from nephoscope.core.model import Estimate
from nephoscope.features.cloud.distances import machines_of, matrix, plan_of
from nephoscope.measure.targets.kinds.rented import RentedRecord


def record(*zones: str, **more: Any) -> RentedRecord:
    values = {"type": "t", "image": "i", **more}
    return RentedRecord.model_validate(
        {"name": "m", "provider": "ec2", "region": "r", "zone": list(zones), **values}
    )


def test_each_pair_of_zones_is_measured_in_both_directions() -> None:
    plan = plan_of(record("a", "b", "c"), 6, 1.0, budget=600)
    ends = [(entry.on, entry.peer, entry.params.get("direction")) for entry in plan.benchmarks]
    pairs = [("m-a", "m-b"), ("m-a", "m-c"), ("m-b", "m-c")]
    assert ends == [
        ((far,), near, direction) for near, far in pairs for direction in (None, "up", "down")
    ]


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (record("a"), "need two zones or more, not 1"),
        (record("a", "b", type=["t", "u"]), "one machine in each zone, not 4 in 2"),
    ],
)
def test_too_few_zones_are_one_sentence(made: RentedRecord, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        machines_of(made)


def line(metric: str, target: str, value: float, **factors: str) -> SimpleNamespace:
    estimate = Estimate(value, None, None, 0.95, 6, "ns", "median")
    return SimpleNamespace(metric=metric, target=target, factors=factors, estimate=estimate)


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
    result: Any = SimpleNamespace(metrics=lines)
    found = matrix(result, machines_of(record(*zones)))
    assert len(found) == len(zones) * (len(zones) - 1) / 2
    for one in found:
        assert one.rtt is not None
        assert one.goodput is not None
        assert one.goodput_back is not None
        pair = 10.0 * zones.index(one.zone_a) + zones.index(one.zone_b)
        # `up` goes from the target of the trial, which is the farther zone, to its peer.
        values = (one.rtt.value, one.goodput.value, one.goodput_back.value)
        assert values == (pair, pair + 200, pair + 100)
    empty: Any = SimpleNamespace(metrics=[])
    assert {one.rtt for one in matrix(empty, machines_of(record(*zones)))} == {None}
