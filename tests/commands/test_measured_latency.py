"""Round trips of a stored run become the latencies of a scenario."""

from __future__ import annotations

import pytest

from nephoscope.commands.measured_latency import DRAWN, _quantiles


def test_the_shape_of_round_trips_is_kept() -> None:
    # 1 ms nine times in ten, 5 ms else.
    found = _quantiles({1e6: 9000, 5e6: 1000})
    assert len(found) == DRAWN
    assert found.count(1.0) == pytest.approx(0.9 * DRAWN)
    assert found == sorted(found)


def test_few_round_trips_are_kept_one_by_one() -> None:
    assert _quantiles({2e6: 1, 3e6: 2}) == [2.0, 3.0, 3.0]
