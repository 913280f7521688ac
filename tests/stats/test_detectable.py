"""Predicted widths and differences are held against comparisons of the same noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from nephoscope.core.model import Better, Estimate
from nephoscope.stats import compare, detectable
from nephoscope.stats.detectable import DetectableDifference, NeededRepetitions
from nephoscope.stats.statistics.values import Array, Refused

Sides = tuple[Array, Array]
Noise = Callable[[np.random.Generator, int], Sides]

COMPARISONS = 200
PREDICTIONS = 6
SD = 0.03


def independent(rng: np.random.Generator, n: int) -> Sides:
    a, b = np.exp(rng.normal(0, SD, (2, n)))
    return a, b


def autoregressive(rng: np.random.Generator, n: int) -> Sides:
    """Each side depends on its own past with 0.6, so that the rounds' ratios do, too."""
    steps = rng.normal(0, SD * 0.8, (2, n + 50))
    values = np.zeros_like(steps)
    for place in range(1, n + 50):
        values[:, place] = 0.6 * values[:, place - 1] + steps[:, place]
    a, b = np.exp(values[:, 50:])
    return a, b


def drifting(rng: np.random.Generator, n: int) -> Sides:
    """A level that wanders from trial to trial; which side of a round is first is drawn."""
    trials = np.cumsum(rng.normal(0, SD / 2, 2 * n)) + rng.normal(0, SD, 2 * n)
    order = np.argsort(rng.random((n, 2)), axis=1)
    rounds = np.take_along_axis(trials.reshape(n, 2), order, axis=1)
    return np.exp(rounds[:, 0]), np.exp(rounds[:, 1])


def half_width(sides: Sides) -> float:
    ratio = compare.paired(*sides, better=Better.LOWER).ratio
    if ratio is None or not ratio.low or ratio.high is None:
        return math.inf
    return (ratio.high - ratio.low) / 2


@pytest.mark.parametrize(
    ("noise", "rounds"), [(independent, 40), (autoregressive, 80), (drifting, 40)]
)
def test_predicts_the_width_of_comparisons_without_a_difference(noise: Noise, rounds: int) -> None:
    """Within 30 % of the median width of 200 comparisons of 20 rounds that `compare` makes."""
    n, rng = 20, np.random.default_rng(7)
    actual = float(np.median([half_width(noise(rng, n)) for _ in range(COMPARISONS)]))
    predicted: list[Estimate] = []
    for seed in range(PREDICTIONS):
        (row,) = detectable.detectable(*noise(rng, rounds), (n,), seed=seed)
        assert row.half_width is not None
        predicted.append(row.half_width)
    middle = float(np.median([estimate.value for estimate in predicted]))
    assert 1 / 1.3 < middle / actual < 1.3, (middle, actual)
    # Of six intervals at 95 %, fewer than four hold the truth once in 450 times.
    holding = [estimate for estimate in predicted if _holds(estimate, actual)]
    assert len(holding) >= 4, (predicted, actual)


def _holds(estimate: Estimate, truth: float) -> bool:
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low <= truth <= estimate.high


def test_the_difference_is_decided_as_often_as_stated() -> None:
    """A planted difference of the predicted size is found in 80 % of comparisons."""
    n, rng = 20, np.random.default_rng(3)
    (row,) = detectable.detectable(*independent(rng, 2000), (n,), resamples=100)
    assert row.difference is not None
    planted = 1 + row.difference.value
    decided = 0
    for _ in range(COMPARISONS):
        a, b = independent(rng, n)
        ratio = compare.paired(a, b * planted, better=Better.LOWER).ratio
        decided += ratio is not None and ratio.low is not None and ratio.low > 1
    # Three standard deviations of 200 comparisons and of the 200 ends that the quantile rests on.
    assert abs(decided / COMPARISONS - 0.8) < 3 * math.sqrt(0.8 * 0.2 * (2 / COMPARISONS))


def test_more_repetitions_never_decide_less() -> None:
    rng = np.random.default_rng(5)
    rows = detectable.detectable(*independent(rng, 30), (100, 10, 20, 10), resamples=5)
    assert [row.n for row in rows] == [10, 20, 100]
    for estimates in (
        [row.difference for row in rows],
        [row.half_width for row in rows],
    ):
        values = [estimate.value for estimate in estimates if estimate is not None]
        assert len(values) == 3
        assert values == sorted(values, reverse=True)


def test_the_same_rounds_give_the_same_prediction() -> None:
    a, b = independent(np.random.default_rng(1), 30)
    first, again = (detectable.detectable(a, b, (10,), seed=4, resamples=5) for _ in range(2))
    assert first == again


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (np.ones(7), np.ones(7), "7 rounds do not show the noise; measure at least 8"),
        (np.ones(20), np.ones(20), "do not differ"),
        (np.arange(20.0), np.arange(20.0) + 1, "zero, negative or missing"),
        (np.append(np.ones(19), math.inf), np.ones(20), "zero, negative or missing"),
    ],
)
def test_refuses_rounds_that_show_no_noise(a: Array, b: Array, message: str) -> None:
    with pytest.raises(Refused, match=message):
        detectable.detectable(a, b)


def rows(*differences: tuple[int, float | None]) -> Sequence[DetectableDifference]:
    return [
        DetectableDifference(
            n,
            None
            if value is None
            else Estimate(value, value / 2, value * 2, 0.95, 40, "ratio", "made"),
            None,
        )
        for n, value in differences
    ]


def test_repetitions_for_a_difference_follow_the_curve() -> None:
    curve = rows((6, None), (10, 0.04), (40, 0.02))
    # By the square root of n between the sizes and beyond them.
    assert detectable.repetitions_for(curve, 0.04) == NeededRepetitions(10, 10, 40)
    assert detectable.repetitions_for(curve, 0.03) == NeededRepetitions(18, 10, 72)
    assert detectable.repetitions_for(curve, 0.01) == NeededRepetitions(160, 40, 640)
    assert detectable.repetitions_for(curve, 0.005) == NeededRepetitions(640, 160, None)
    assert detectable.repetitions_for(curve, 0.001) == NeededRepetitions(None, None, None)
    assert detectable.repetitions_for(rows((6, None)), 0.02) is None
