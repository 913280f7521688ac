"""Prediction intervals: coverage on drawn platforms of known truth, few machines, and run times."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from nephoscope.features.advise import prediction
from nephoscope.stats.statistics.values import Array, Refused

Draw = Callable[[np.random.Generator, int], Array]


def platforms(
    draw: Draw, *, sizes: tuple[int, ...], repeats: int, seed: int
) -> dict[tuple[str, str], Mapping[str, float]]:
    """Platforms whose machines are drawn; each has a level of its own."""
    random = np.random.default_rng(seed)
    drawn = {}
    for number in range(repeats):
        for size in sizes:
            level = math.exp(random.normal(0, 1))
            values = level * draw(random, size)
            name = f"{size}-{number}"
            drawn[name, "m"] = {f"{name}-{i}": float(value) for i, value in enumerate(values)}
    return drawn


def normal(random: np.random.Generator, size: int) -> Array:
    """Log-normal machines (5 %) with the noise of a few trials (3 %)."""
    return np.exp(random.normal(0, 0.05, size) + random.normal(0, 0.03, (5, size)).mean(axis=0))


def heavy(random: np.random.Generator, size: int) -> Array:
    return np.exp(0.05 * random.standard_t(4, size))


def two_models(random: np.random.Generator, size: int) -> Array:
    return np.exp(0.3 * (random.random(size) < 0.3) + random.normal(0, 0.02, size))


def skewed(random: np.random.Generator, size: int) -> Array:
    return 1 + random.gamma(2, 0.1, size)


@pytest.mark.parametrize("size", [4, 6, 12, 20, 25, 38])
def test_intervals_cover_the_left_out_machine(size: int) -> None:
    drawn = platforms(normal, sizes=(size,), repeats=2000 // size, seed=size)
    tested = prediction.back_test(drawn, confidence=0.9)
    assert tested.coverage is not None
    assert tested.coverage.value == pytest.approx(0.9, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("draw", [normal, heavy, two_models, skewed])
@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95])
def test_coverage_over_mixed_platforms(draw: Draw, confidence: float) -> None:
    sizes = (4, 5, 8, 12, 16, 20, 24, 30, 40, 60)
    tested = prediction.back_test(
        platforms(draw, sizes=sizes, repeats=60, seed=3), confidence=confidence
    )
    assert tested.coverage is not None
    assert tested.coverage.value == pytest.approx(confidence, abs=0.03)


def test_the_next_of_nineteen_lies_between_the_ends() -> None:
    estimate = prediction.predict(list(range(1, 20)), unit="none", confidence=0.9)
    assert (estimate.low, estimate.value, estimate.high) == pytest.approx((1, 10, 19))
    estimate = prediction.predict(list(range(1, 40)), unit="none", confidence=0.9)
    assert (estimate.low, estimate.high) == pytest.approx((2, 38))


def test_few_machines_give_the_t_interval_of_one_more() -> None:
    values = [math.exp(value) for value in (1.0, 2.0, 3.0)]
    estimate = prediction.predict(values, unit="ns", confidence=0.9)
    half = 2.919986 * math.sqrt(4 / 3)
    assert estimate.value == pytest.approx(math.exp(2))
    assert estimate.low == pytest.approx(math.exp(2 - half))
    assert estimate.high == pytest.approx(math.exp(2 + half))


@pytest.mark.parametrize("count", [1, 2])
def test_too_few_machines_have_a_value_and_no_interval(count: int) -> None:
    estimate = prediction.predict([1.0, 3.0][:count], unit="ns", confidence=0.9)
    assert (estimate.value, estimate.low, estimate.high) == (float(count), None, None)
    assert estimate.note.startswith(f"Too few machines: {count} measured")


def test_without_machines_nothing_is_predicted() -> None:
    with pytest.raises(Refused):
        prediction.predict([], unit="ns", confidence=0.9)


def test_values_of_both_signs_are_not_taken_as_logarithms() -> None:
    estimate = prediction.predict([-1.0, 0.0, 1.0], unit="none", confidence=0.9)
    assert estimate.value == 0
    assert estimate.low == pytest.approx(-2.919986 * math.sqrt(4 / 3))


def test_a_machine_counts_once_however_often_it_was_measured() -> None:
    values = {"a": {"r1": [1.0, 3.0, 2.0], "r2": [4.0]}, "b": {"r3": [5.0]}, "c": {}}
    assert prediction.machine_values(values) == {"a": 3.0, "b": 5.0}


def test_spread_between_and_within_machines() -> None:
    random = np.random.default_rng(5)
    levels = random.normal(0, 0.2, 400)
    values = {
        f"m{i}": {"run": list(np.exp(level + random.normal(0, 0.05, 10)))}
        for i, level in enumerate(levels)
    }
    spread = prediction.spread(values)
    assert spread.between == pytest.approx(float(np.std(levels, ddof=1)), rel=0.02)
    assert spread.within == pytest.approx(0.05, rel=0.03)
    assert prediction.spread({"a": {"r": [1.0]}}) == prediction.Spread(None, None)


def test_run_time_by_shares_and_speeds() -> None:
    shares = {"cpu": 0.6, "memory": 0.1, "disk": 0.2, "network": 0.1}
    speeds = {"cpu": 1.5, "memory": 1.0, "disk": 0.5, "network": 2.0}
    assert prediction.relative_time(shares, speeds) == pytest.approx(0.95)
    assert prediction.relative_time({"cpu": 0.4}, {"cpu": 2.0}) == pytest.approx(0.8)


def test_a_back_test_compares_with_knowing_no_platform() -> None:
    values = {
        ("fast", "m"): {f"f{i}": 100.0 + i for i in range(6)},
        ("slow", "m"): {f"s{i}": 50.0 + i for i in range(6)},
        ("rare", "m"): {"r0": 1.0, "r1": 2.0},
    }
    tested = prediction.back_test(values, confidence=0.9)
    assert (tested.predictions, tested.machines, tested.skipped) == (12, 12, 2)
    assert tested.error is not None
    assert tested.error_any_platform is not None
    assert tested.error.value < 0.03 < 0.2 < tested.error_any_platform.value


def test_intervals_of_the_back_test_count_machines_and_not_their_metrics() -> None:
    random = np.random.default_rng(2)
    machines = {f"m{i}": float(value) for i, value in enumerate(np.exp(random.normal(size=10)))}
    values = {("p", f"metric {i}"): machines for i in range(50)}
    tested = prediction.back_test(values, confidence=0.9)
    assert tested.predictions == 500
    assert tested.coverage is not None
    assert tested.error is not None
    assert (tested.coverage.n, tested.error.n) == (10, 10)


def test_a_back_test_without_platforms_of_four_machines_says_so() -> None:
    tested = prediction.back_test({("a", "m"): {"x": 1.0, "y": 1.0}}, confidence=0.9)
    assert (tested.predictions, tested.coverage, tested.skipped) == (0, None, 2)
