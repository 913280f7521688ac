"""Bounds of the long-run share of good slots, where outages last many slots."""

from __future__ import annotations

import numpy as np
import pytest
from tests.rates import holds_rate

from nephoscope.features.sla.outage_bounds import bounded_share_of_slots

MONTH = 43_200


def month(rng: np.random.Generator, share: float, shortest: int, longest: int) -> np.ndarray:
    """A month of minutes in which a share is down, in outages of these numbers of slots."""
    down = np.zeros(MONTH, dtype=bool)
    count = rng.poisson(MONTH * share / ((shortest + longest) / 2))
    for start in rng.integers(0, MONTH - longest, count):
        down[start : start + rng.integers(shortest, longest + 1)] = True
    return down


@pytest.mark.parametrize(("shortest", "longest"), [(1, 1), (8, 20), (1, 60)])
def test_a_service_on_its_objective_is_rarely_met_or_violated(shortest: int, longest: int) -> None:
    rng = np.random.default_rng([41, longest])
    held: list[bool] = []
    for _ in range(300):
        share = bounded_share_of_slots(month(rng, 0.001, shortest, longest), MONTH, 60.0, 0.95)
        assert share is not None
        assert share.low is not None
        assert share.high is not None
        held.append(share.low < 0.999 <= share.high)
    holds_rate(f"neither, outages of {shortest} to {longest} slots", held, 0.9)


def test_a_year_far_from_the_objective_is_decided() -> None:
    down = np.zeros(12 * MONTH, dtype=bool)
    for start in range(0, down.size, down.size // 10):
        down[start : start + 10] = True
    share = bounded_share_of_slots(down, down.size, 60.0, 0.95)
    assert share is not None
    assert share.low is not None
    assert share.low > 0.999
    assert "of 10 outages" in share.method


def test_without_an_outage_its_duration_is_assumed_and_stated() -> None:
    none = np.zeros(MONTH, dtype=bool)
    share = bounded_share_of_slots(none, MONTH, 60.0, 0.95)
    assert share is not None
    assert (share.value, share.high) == (1.0, 1.0)
    assert share.low == pytest.approx(1 - 2.9957 * 60 / MONTH, abs=1e-6)
    assert "lasting 60 min on average, as none was observed" in share.method
    assert bounded_share_of_slots(none[:0], 0, 60.0, 0.95) is None
