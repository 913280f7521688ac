"""Jain's index: closed form, bounds, and coverage of its interval."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.stats.statistics import fairness
from nephoscope.stats.statistics.values import Refused


def test_jain() -> None:
    assert fairness.jain((80, 10)) == pytest.approx(0.62308, abs=5e-6)
    assert fairness.jain((3, 3, 3)) == pytest.approx(1)
    assert fairness.jain((1, 0, 0, 0)) == pytest.approx(0.25)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20).filter(lambda x: max(x) > 1e-6))
def test_jain_lies_between_one_nth_and_one(shares: list[float]) -> None:
    found = fairness.jain(shares)
    assert 1 / len(shares) - 1e-9 <= found <= 1 + 1e-9
    assert found == pytest.approx(fairness.jain([2 * share for share in shares]))


def test_jain_refuses_what_is_no_share() -> None:
    for wrong in ((0, 0), (-1, 2)):
        with pytest.raises(Refused):
            fairness.jain(wrong)
    with pytest.raises(Refused, match="two tenants"):
        fairness.jain_of_rounds([[1.0]])


def test_jain_of_rounds_covers() -> None:
    # 300 runs of 12 rounds, shares 80 and 10 with 10 % noise: standard error 0.0126 at 0.95.
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(300):
        rows = np.array([80, 10]) * (1 + rng.normal(0, 0.1, (12, 2)))
        found = fairness.jain_of_rounds(rows)
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 0.62308 <= found.high
    assert 0.91 <= hits / 300 <= 0.99
    few = fairness.jain_of_rounds([[80.0, 10.0]] * 5)
    assert (few.low, few.high) == (None, None)
    assert "6 rounds" in few.note
