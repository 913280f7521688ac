"""Dose and response: known laws, size without a trend, power with one, and the words."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import by_profile
from tests.rates import allowance

from nephoscope.features.isolation import dose_response
from nephoscope.stats.statistics.values import Refused

ASKED = (0.0, 0.25, 0.5, 0.75, 1.0)


def test_theil_sen_of_a_straight_line_with_an_outlier() -> None:
    x = np.arange(10.0)
    y = 3 * x + 1
    y[4] = 500
    found = dose_response.theil_sen(x, y)
    assert found.estimate.value == pytest.approx(3)
    assert found.estimate.low is not None
    assert found.estimate.high is not None
    assert found.estimate.low <= 3 <= found.estimate.high
    assert found.p < 0.01


def test_sens_interval_by_hand() -> None:
    # 5 points, no ties: variance 50/3, C = 1.96 sqrt(50/3) = 8.0; of 10 slopes the 1st and the
    # 10th, by M1 = (10 - 8.0)/2 = 1.0 and M2 + 1 = 10.
    x = np.arange(5.0)
    y = np.array([0.0, 1.0, 2.5, 2.4, 4.0])
    slopes = sorted((y[j] - y[i]) / (x[j] - x[i]) for i, j in product(range(5), range(5)) if i < j)
    found = dose_response.theil_sen(x, y, confidence=0.90).estimate
    # C = 1.645 * 4.0825 = 6.715: ranks floor(1.64) = 1 and ceil(8.36) + 1 = 10.
    assert (found.low, found.high) == (slopes[0], slopes[9])


def test_theil_sen_covers() -> None:
    # 600 series of 15: standard error 0.009 at 0.95; heavy tails on purpose.
    rng = np.random.default_rng(1)
    x = np.linspace(0, 1, 15)
    hits = 0
    for _ in range(600):
        found = dose_response.theil_sen(x, 2 * x + 0.3 * rng.standard_t(3, 15)).estimate
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 2 <= found.high
    assert 0.93 <= hits / 600 <= 0.98


def test_what_has_no_slope_is_refused() -> None:
    with pytest.raises(Refused, match="equal"):
        dose_response.theil_sen([1, 1, 1], [1, 2, 3])
    with pytest.raises(Refused, match="two distinct"):
        dose_response.slope_of_rounds([([1.0, 1.0], [1.0, 2.0])])


# Page --------------------------------------------------------------------------------------------


def test_pages_law_by_counting() -> None:
    # Two rounds of three doses: L over all 36 orders, by hand.
    orders = [(1, 2, 3), (1, 3, 2), (2, 1, 3), (2, 3, 1), (3, 1, 2), (3, 2, 1)]
    totals = [sum((i + 1) * (a[i] + b[i]) for i in range(3)) for a, b in product(orders, orders)]
    found = dose_response.page(np.array([[1.0, 2, 3], [1, 3, 2]]))
    assert found.statistic == 14 + 13
    assert found.p_rises == pytest.approx(sum(t >= 27 for t in totals) / 36)
    assert found.exact


def test_pages_table() -> None:
    # Page 1963, table of critical values: L = 28 is the 5 % point of 3 doses in 2 rounds, and 41
    # that of 3 rounds.
    best = dose_response.page(np.array([[1.0, 2, 3], [1, 2, 3]]))
    assert best.statistic == 28
    assert best.p_rises <= 0.05
    three = np.array([[1.0, 2, 3], [1, 2, 3], [1, 3, 2]])
    assert dose_response.page(three).statistic == 41
    assert dose_response.page(three).p_rises <= 0.05


@pytest.mark.parametrize(("rounds", "doses"), [(4, 3), (8, 5), (10, 8)])
def test_size_without_a_trend(rounds: int, doses: int) -> None:
    # 3,000 runs: standard error 0.004 at 0.05. Exact and discrete: never more than 0.05.
    rng = np.random.default_rng(rounds)
    runs = by_profile(quick=500, whole=3000)
    hits = sum(dose_response.page(rng.normal(size=(rounds, doses))).p < 0.05 for _ in range(runs))
    assert hits / runs <= 0.05 + 3 * 0.004 + allowance(runs, 3000)


def test_power_with_a_trend() -> None:
    # 10 % in all over four doses at 3 % noise, 10 rounds: seen nearly always.
    rng = np.random.default_rng(2)
    line = 1 + 0.1 * np.array(ASKED)
    rows = [line * np.exp(rng.normal(0, 0.03, (10, 5))) for _ in range(300)]
    assert sum(dose_response.page(one).p < 0.05 for one in rows) >= 285


@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=6))
def test_page_is_a_law_whatever_ties_there_are(rows: list[list[int]]) -> None:
    table = np.array(rows, dtype=float)
    found, mirrored = dose_response.page(table), dose_response.page(table[:, ::-1])
    assert found.p_rises == pytest.approx(mirrored.p_falls)
    assert 0 < found.p <= 1
    # The chances of at least and of at most L hold L twice.
    assert found.p_rises + found.p_falls > 1 - 1e-9
    louder = dose_response.page(np.exp(table))
    assert louder.p == pytest.approx(found.p)  # ranks only


def test_normal_law_agrees_with_the_exact_one() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        table = rng.normal(size=(12, 5)) + 0.2 * np.arange(5)
        ranked = np.argsort(np.argsort(table, axis=1), axis=1) + 1.0
        exact = dose_response.page(table)
        normal = dose_response._page_normal(ranked, exact.statistic)
        assert normal.p_rises == pytest.approx(exact.p_rises, abs=0.02)


def test_a_test_without_doses_is_refused() -> None:
    for wrong in (np.ones((3, 1)), np.ones((0, 3)), np.ones(4), np.array([[1.0, math.nan]])):
        with pytest.raises(Refused):
            dose_response.page(wrong)


# Words -------------------------------------------------------------------------------------------


def respond(
    truth: list[float], rounds: int = 12, noise: float = 0.01, seed: int = 1
) -> dose_response.Response:
    rng = np.random.default_rng(seed)
    table = np.array(truth) * np.exp(rng.normal(0, noise, (rounds, len(truth))))
    doses = np.tile(ASKED[: len(truth)], (rounds, 1))
    return dose_response.respond(table, doses, requested=ASKED[: len(truth)])


@pytest.mark.parametrize(
    ("truth", "word"),
    [
        ([1.0, 1.1, 1.2, 1.3, 1.4], "rises"),
        ([1.0, 0.95, 0.9, 0.85, 0.8], "falls"),
        ([1.0, 1.0, 1.0, 1.0, 1.0], "flat"),
        ([1.0, 1.4, 1.5, 1.4, 1.0], "not monotone"),
        ([1.0, 1.3, 1.6, 1.9, 1.2], "not monotone"),
        ([1.0, 1.1], "too few"),
    ],
)
def test_words(truth: list[float], word: str) -> None:
    assert respond(truth).word == word


def test_noise_is_not_flatness() -> None:
    assert respond([1.0] * 5, noise=0.3).word == "too few"
    assert respond([1.0] * 5, rounds=3).word == "too few"


def test_words_err_as_rarely_as_promised() -> None:
    # Without any effect: a trend in at most 5 % of 400 runs (standard error 0.011), and the words
    # of steps, corrected for all pairs, in addition at most as often.
    words = [respond([1.0] * 5, noise=0.1, seed=seed).word for seed in range(400)]
    wrong = sum(word in {"rises", "falls", "not monotone"} for word in words)
    assert wrong / 400 <= 0.05 + 3 * 0.011


def test_the_slope_is_by_achieved_dose_and_covers() -> None:
    # The load reaches 80 % of what is asked, give or take: the slope is by what it reached.
    rng = np.random.default_rng(9)
    hits = 0
    for _ in range(400):
        asked = np.tile(ASKED, (10, 1))
        reached = asked * 0.8 * np.exp(rng.normal(0, 0.02, asked.shape))
        table = (1 + 0.5 * reached) * np.exp(rng.normal(0, 0.01, asked.shape))
        found = dose_response.respond(table, reached, requested=ASKED).slope
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 0.5 <= found.high
    # Exact for symmetric slopes: 0.951 at 10 rounds, standard error 0.011.
    assert 0.92 <= hits / 400 <= 0.985


def test_factors_without_a_logarithm_are_refused() -> None:
    with pytest.raises(Refused, match="logarithm"):
        dose_response.respond(np.zeros((5, 3)), np.zeros((5, 3)), requested=ASKED[:3])
