from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from nephoscope.stats.statistics.proportions import exact_bounds, wilson
from nephoscope.stats.statistics.values import Refused


@pytest.mark.parametrize("confidence", [0.9, 0.95, 1 - 1e-6])
@pytest.mark.parametrize(("hits", "tries"), [(0, 1), (0, 10), (1, 10), (50, 10_000), (7, 7)])
def test_it_agrees_with_another_implementation(hits: int, tries: int, confidence: float) -> None:
    ours = wilson(hits, tries, confidence=confidence)
    theirs = binomtest(hits, tries).proportion_ci(confidence, method="wilson")
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert (ours.value, ours.n, ours.unit) == (hits / tries, tries, "ratio")


def test_ends_are_ends() -> None:
    assert wilson(0, 50).low == 0
    assert wilson(50, 50).high == 1


def test_it_covers_as_often_as_it_says() -> None:
    random = np.random.default_rng(5)
    for share in (0.005, 0.02, 0.1):
        seen = [wilson(int(hits), 10_000) for hits in random.binomial(10_000, share, 2_000)]
        covered = np.mean([one.low <= share <= one.high for one in seen])
        # Four standard errors of 2,000 draws at 95 % are 2 points.
        assert abs(covered - 0.95) < 0.02


@pytest.mark.parametrize(("hits", "tries"), [(0, 0), (2, 1), (-1, 5)])
def test_what_is_no_share_is_refused(hits: int, tries: int) -> None:
    with pytest.raises(Refused):
        wilson(hits, tries)


def test_exact_bounds_of_shares() -> None:
    low, high = exact_bounds(940, 1000)
    assert low == pytest.approx(0.92615, abs=1e-5)
    assert high > 0.94
    assert exact_bounds(2995, 2995)[0] >= 0.999 > exact_bounds(2994, 2994)[0]
    assert exact_bounds(0, 10) == (0.0, pytest.approx(1 - 0.05**0.1))
    assert exact_bounds(10, 10) == (pytest.approx(0.05**0.1), 1.0)
    for hits, tries in ((1, 0), (-1, 5), (6, 5)):
        with pytest.raises(Refused):
            exact_bounds(hits, tries)
