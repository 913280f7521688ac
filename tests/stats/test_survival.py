"""Survival curves against closed forms and against simulated histories."""

from __future__ import annotations

import numpy as np
import pytest

from nephoscope.stats import survival
from nephoscope.stats.statistics.values import Refused


def test_the_curve_is_that_of_kaplan_and_meier() -> None:
    # Lives 1, 2+, 3, 4+: 1 - 1/4, then times 1 - 1/2.
    curve = survival.survival([1.0, 2.0, 3.0, 4.0], [True, False, True, False])
    assert [(step.at, step.at_risk, step.share) for step in curve.steps] == [
        (1.0, 4, 0.75),
        (3.0, 2, 0.375),
    ]
    assert curve.exposure == 10
    assert curve.rate().value == pytest.approx(0.2)
    median = curve.median()
    assert median is not None
    assert median.value == 3.0


def test_without_an_interruption_there_is_a_bound_and_no_median() -> None:
    curve = survival.survival([10.0] * 3, [False] * 3)
    assert curve.median() is None
    rate = curve.rate()
    assert (rate.value, rate.low) == (0.0, 0.0)
    assert rate.high == pytest.approx(3.6889 / 30, rel=1e-3)
    share = curve.share_at(5.0)
    assert share.value == 1.0
    # The lower bound of 3 in 3 by Clopper and Pearson.
    assert share.low == pytest.approx(0.025 ** (1 / 3), rel=1e-6)


def test_poisson_bounds_are_garwoods() -> None:
    low, high = survival.poisson_bounds(5)
    assert (low, high) == (pytest.approx(1.6235, rel=1e-4), pytest.approx(11.6683, rel=1e-4))


@pytest.mark.parametrize("shape", [1.0, 2.0])
def test_intervals_cover_over_200_histories(shape: float) -> None:
    draws = np.random.default_rng(11)
    true_share, true_median = np.exp(-(0.4**shape)), 10 * np.log(2) ** (1 / shape)
    points = np.linspace(0, 4, 2001)
    true_time = np.trapezoid(np.exp(-((points / 10) ** shape)), points) / true_share
    rate_covers = share_covers = median_covers = time_covers = medians = 0
    for _ in range(200):
        lives, cut = 10 * draws.weibull(shape, 12), draws.uniform(4, 25, 12)
        curve = survival.survival(np.minimum(lives, cut), lives <= cut)
        rate, share = curve.rate(), curve.share_at(4.0)
        assert rate.low is not None
        assert rate.high is not None
        rate_covers += rate.low <= 0.1 <= rate.high
        assert share.low is not None
        assert share.high is not None
        share_covers += share.low <= true_share <= share.high
        time = survival.outlook(curve, 4.0).machine_time
        time_covers += (time.low or 0) <= true_time <= (time.high or np.inf)
        if (median := curve.median()) is not None:
            medians += 1
            median_covers += (median.low or 0) <= true_median <= (median.high or np.inf)
    if shape == 1.0:
        assert rate_covers >= 190
    assert share_covers >= 190
    assert time_covers >= 190
    assert median_covers >= 0.95 * medians


def test_equal_hazards_are_rejected_at_the_nominal_rate_and_others_are() -> None:
    draws = np.random.default_rng(2)
    wrong = 0
    for _ in range(200):
        groups = {name: (draws.exponential(5, 15), [True] * 15) for name in "abc"}
        p = survival.log_rank(groups)
        assert p is not None
        wrong += p < 0.05
    assert wrong <= 20
    p = survival.log_rank(
        {"a": (draws.exponential(1, 20), [True] * 20), "b": (draws.exponential(9, 20), [True] * 20)}
    )
    assert p is not None
    assert p < 0.001
    assert survival.log_rank({"a": ([1.0], [True]), "b": ([2.0], [True])}) is None


@pytest.mark.parametrize(
    ("lives", "ended", "words"),
    [
        ([], [], "too few"),
        ([1.0, 0.0], [True, True], "no length"),
        ([1.0], [True, False], "do not match"),
    ],
)
def test_what_is_no_history_is_refused(lives: list[float], ended: list[bool], words: str) -> None:
    with pytest.raises(Refused, match=words):
        survival.survival(lives, ended)


def test_a_job_longer_than_every_life_is_refused() -> None:
    with pytest.raises(Refused, match="observe for longer"):
        survival.outlook(survival.survival([1.0, 2.0], [True, False]), 3.0)
