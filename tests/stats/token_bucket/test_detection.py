"""Which series have the shape of a token bucket that ran dry."""

from __future__ import annotations

import numpy as np
import pytest

from nephoscope.stats.statistics.values import Refused
from nephoscope.stats.token_bucket.detection import Recognised, rate_series, recognise
from nephoscope.stats.token_bucket.records import BurstCredit

TIMES = np.arange(200.0)


def _noisy(levels: np.ndarray) -> np.ndarray:
    return levels * (1 + np.random.default_rng(3).normal(0, 0.01, levels.size))


def test_a_fall_that_stays_is_recognised_at_its_point() -> None:
    result = recognise(rate_series(TIMES, _noisy(np.where(TIMES < 120, 100.0, 40.0))))
    assert isinstance(result, Recognised)
    (drop,) = result.drops
    assert drop.first_low == 120
    assert (result.burst, result.baseline) == pytest.approx((100.0, 40.0), rel=0.01)


@pytest.mark.parametrize(
    ("levels", "verdict", "words"),
    [
        (np.full(200, 100.0), "steady", "No drop of 15 % or more"),
        (np.where((TIMES // 40) % 2, 50.0, 100.0), "varies", "rises again under load"),
        (np.linspace(100.0, 40.0, 200), "varies", "as a slope without an edge"),
        (np.where(TIMES < 195, 100.0, 40.0), "cannot be told", "measure for longer"),
    ],
)
def test_other_shapes_have_a_verdict_with_a_reason(
    levels: np.ndarray, verdict: str, words: str
) -> None:
    result = recognise(rate_series(TIMES, _noisy(levels)))
    assert isinstance(result, BurstCredit)
    assert result.verdict == verdict
    assert words in result.reason


def test_few_points_cannot_be_told() -> None:
    result = recognise(rate_series([0, 1, 2], [5, 5, 1]))
    assert isinstance(result, BurstCredit)
    assert result.verdict == "cannot be told"
    assert "3 points under load are too few" in result.reason


@pytest.mark.parametrize(
    ("times", "rates", "busy", "words"),
    [
        ([0, 1, 1], [1, 1, 1], None, "point 3 of 3 is not later"),
        ([0, 1], [1, 1, 1], None, "2 times and 3 rates"),
        ([0, 1, 2], [1, -1, 1], None, "1 of 3 rates are negative"),
        ([0, 1, 2], [1, 1, 1], [1, 2, 1], "busy time"),
    ],
)
def test_what_is_no_series_is_refused(
    times: list[float], rates: list[float], busy: list[float] | None, words: str
) -> None:
    with pytest.raises(Refused, match=words):
        rate_series(times, rates, busy)
