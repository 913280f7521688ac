"""Round trips of a stored run become the latencies of a scenario."""

from __future__ import annotations

import pytest

from nephoscope.core.errors import UsageError
from nephoscope.features.simulation.measured_latency import DRAWN, _quantiles, unmeasured


def test_the_shape_of_round_trips_is_kept() -> None:
    # 1 ms nine times in ten, 5 ms else.
    found = _quantiles({1e6: 9000, 5e6: 1000})
    assert len(found) == DRAWN
    assert found.count(1.0) == pytest.approx(0.9 * DRAWN)
    assert found == sorted(found)


def test_few_round_trips_are_kept_one_by_one() -> None:
    assert _quantiles({2e6: 1, 3e6: 2}) == [2.0, 3.0, 3.0]


def geo(**bases: str | None) -> dict[str, object]:
    """Users in these regions, and sites in Europe and in Asia."""
    users = {name: {"region": region} if region else {} for name, region in bases.items()}
    return {
        "user_bases": users,
        "sites": {"frankfurt": {"region": "europe"}, "osaka": {"region": "asia"}},
    }


def measured(*pairs: tuple[str, str]) -> dict[str, object]:
    return {"measured": {near: {far: [1.0]} for near, far in pairs}}


def test_pairs_are_found_by_names_or_regions_in_either_order() -> None:
    every = measured(("frankfurt", "berlin"), ("asia", "berlin"))
    assert unmeasured(geo(berlin=None), every, "r") == []
    within = measured(("europe", "europe"), ("osaka", "europe"))
    assert unmeasured(geo(berlin="europe"), within, "r") == []


def test_a_pair_that_was_not_measured_is_told() -> None:
    (told,) = unmeasured(geo(berlin=None), measured(("berlin", "europe")), "r")
    assert told.startswith("Run r has no round-trip times between berlin and osaka; they are not")


def test_a_user_base_without_any_round_trip_is_refused_with_what_there_is() -> None:
    with pytest.raises(UsageError, match="user base 'tokyo' and any site") as caught:
        unmeasured(geo(berlin=None, tokyo=None), measured(("berlin", "frankfurt")), "r")
    assert "It has round-trip times between berlin and frankfurt." in caught.value.hint


def test_what_is_no_scenario_is_left_to_the_simulator() -> None:
    assert unmeasured({"user_bases": [1], "sites": None}, measured(("a", "b")), "r") == []
    assert unmeasured({"user_bases": {"a": 3}}, measured(("a", "b")), "r") == []
