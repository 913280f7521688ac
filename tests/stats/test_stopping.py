import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import by_profile
from tests.rates import allowance

from nephoscope.stats import stopping


def run(values, **limits):
    """Looks as a run would: at n_min, every 5, at n_max."""
    n_min, n_max = limits.get("n_min", 10), limits.get("n_max", 100)
    for n in range(1, n_max + 1):
        if stopping.due(n, n_min=n_min, n_max=n_max):
            stop = stopping.decide(values[:n], **limits)
            if stop.stops:
                return stop
    raise AssertionError("a run ends at n_max")


def test_looks_are_due_at_ten_and_every_five_and_at_the_limit():
    assert [n for n in range(1, 33) if stopping.due(n, n_max=32)] == [10, 15, 20, 25, 30, 32]
    assert [n for n in range(1, 13) if stopping.due(n, n_min=2, n_max=12)] == [10, 12]


def test_quiet_values_converge_at_the_first_look():
    stop = run(np.random.default_rng(1).normal(100, 0.5, 100))
    assert (stop.word, stop.estimate.n) == ("converged", 10)
    assert stop.estimate.half_width_ratio <= 0.02


def test_nothing_converges_below_ten():
    assert stopping.decide([5.0] * 9, n_min=2).word == "continue"
    assert stopping.decide([5.0] * 10, n_min=2).word == "converged"
    assert stopping.decide([5.0] * 6, n_min=2, n_max=6).word == "max_reached"


def test_a_pure_noise_target_ends_early_and_says_its_noise():
    # 50 % noise: ±2 % would take about (1.2533 * 1.96 * 0.5 / 0.02)^2 = 3770 repetitions.
    ended = [
        run(np.random.default_rng(seed).lognormal(0, 0.5, 1000), n_max=1000) for seed in range(100)
    ]
    assert {stop.word for stop in ended} == {"noise_known"}
    assert all(stop.estimate.n >= 30 for stop in ended)
    assert np.median([stop.estimate.n for stop in ended]) <= 80
    # sigma 0.5: 1.4826 * MAD / median of that lognormal is 0.476.
    assert np.median([stop.noise_ratio for stop in ended]) == pytest.approx(0.476, rel=0.15)
    assert "out of reach" in ended[0].reason


def test_a_target_within_reach_is_not_given_up():
    # CoV 5 %: about 38 repetitions for ±2 %, far below 200.
    ended = [run(np.random.default_rng(s).normal(1, 0.05, 200), n_max=200) for s in range(200)]
    assert {stop.word for stop in ended} == {"converged"}


def test_the_limit_is_reported_as_not_converged():
    stop = run(np.random.default_rng(5).normal(1, 0.1, 20), n_max=20)
    assert stop.word == "max_reached"
    assert stop.estimate.n == 20


@pytest.mark.parametrize(("n_min", "floor"), [(10, 0.925), (30, 0.94)])
def test_coverage_survives_the_looks(n_min, floor):
    # CoV 5 %, r 2 %. Required from n_min 30: 0.94 (the t interval: 0.952); from n_min 10 the t
    # interval has 0.939. 2000 series: standard error 0.005.
    rng = np.random.default_rng(30)
    series = by_profile(quick=200, whole=2000)
    rows = rng.normal(1, 0.05, (series, 200))
    ended = [run(row, n_min=n_min, n_max=200).estimate for row in rows]
    covered = np.mean([e.low <= 1 <= e.high for e in ended])
    assert covered >= floor - allowance(series, 2000)


def test_timeouts_and_nothing_at_all():
    assert stopping.decide([]).word == "continue"
    half = [*range(1, 7), *[math.inf] * 6]
    assert stopping.decide(half).word == "continue"
    assert stopping.decide(half, n_max=12).word == "max_reached"
    assert "timed out" in stopping.decide(half, n_max=12).reason


def test_zeros_are_a_result_and_a_median_of_zero_with_noise_ends():
    assert stopping.decide([0.0] * 10).word == "converged"
    assert run(np.random.default_rng(4).integers(0, 2, 100) * 1.0).word in {
        "max_reached",
        "noise_known",
    }


@given(st.lists(st.floats(0.1, 1e6), min_size=0, max_size=120), st.floats(0.001, 0.2))
def test_a_word_keeps_its_promise(values, width):
    stop = stopping.decide(values, relative_half_width=width, n_max=100)
    if stop.word == "converged":
        assert len(values) >= 10
        assert stop.estimate.high - stop.estimate.low <= 2 * width * stop.estimate.value * 1.0000001
    if stop.word == "continue":
        assert len(values) < 100
    if stop.word == "noise_known":
        assert len(values) >= 30
