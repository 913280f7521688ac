"""Isolation metrics: closed forms and bounds."""

from __future__ import annotations

import pytest

from nephoscope.core.model import Estimate
from nephoscope.features.isolation import fairness
from nephoscope.stats.statistics.values import Refused


def estimate(value: float, low: float | None, high: float | None) -> Estimate:
    return Estimate(value, low, high, 0.95, 12, "ratio", "made")


def test_krebs() -> None:
    found = fairness.krebs_of_ratio(estimate(1.4, 1.3, 1.5), 2.0)
    assert (found.value, found.low, found.high) == pytest.approx((0.4, 0.3, 0.5))
    with pytest.raises(Refused, match="changes"):
        fairness.krebs_of_ratio(estimate(1.4, 1.3, 1.5), 1.0)


@pytest.mark.parametrize(
    ("factor", "neighbours", "index"),
    [(1.0, 1, 1.0), (2.0, 1, 0.0), (3.0, 2, 0.0), (4.0, 1, -0.5), (1.25, 1, 0.6), (1.0, 4, 1.0)],
)
def test_isolation_index(factor: float, neighbours: int, index: float) -> None:
    found = fairness.isolation_index(estimate(factor, factor * 0.9, factor * 1.1), neighbours)
    assert found.value == pytest.approx(index)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high  # a larger factor is a smaller index


def test_an_index_keeps_the_sides_that_there_are() -> None:
    found = fairness.isolation_index(estimate(2.0, 1.5, None), 1)
    assert found.low is None
    assert found.high == pytest.approx(1 / 3)
    with pytest.raises(Refused):
        fairness.isolation_index(estimate(2.0, 1.5, 2.5), 0)
