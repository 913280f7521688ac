import math
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.profiles import by_profile
from tests.rates import holds_rate

from nephoscope.stats.statistics import dependence

from ..series import ar1


def mean_of(values, prior=dependence.ASSUMED):
    return dependence.autocorrelation(dependence.posterior(values, prior))


def test_restricted_likelihood_equals_the_one_by_matrices():
    values = np.random.default_rng(1).permutation(12) + 1.0
    ones = np.ones((12, 1))
    expected = []
    for rho in dependence.GRID:
        matrix = rho ** np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
        inverse = np.linalg.inv(matrix)
        information = float((ones.T @ inverse @ ones)[0, 0])
        residual = values - float((ones.T @ inverse @ values)[0]) / information
        expected.append(
            -np.linalg.slogdet(matrix)[1] / 2
            - np.log(information) / 2
            - 11 / 2 * np.log(residual @ inverse @ residual)
        )
    got = dependence._log_likelihood(values)
    assert got - got[0] == pytest.approx(np.array(expected) - expected[0])


def test_long_series_show_their_autocorrelation():
    for rho in (0.3, 0.6, 0.9):
        rows = ar1(np.random.default_rng(2), 40, 400, rho)
        assert np.mean([mean_of(row) for row in rows]) == pytest.approx(rho, abs=0.04)
    # The pattern of NIST's NumAcc4, of lag-1 autocorrelation -0.999: nothing to widen for.
    assert mean_of([10000000.2, *([10000000.1, 10000000.3] * 500)]) == pytest.approx(0)


def test_one_outlier_cannot_hide_a_drift():
    drift = [*range(30), 1e9]
    assert mean_of(drift) > 0.8
    text = dependence.sentence(drift, dependence.posterior(drift))
    assert "Consecutive repetitions depend on each other" in text
    assert "count as" in text
    assert "lower bound" in text


def test_series_without_information_keep_the_prior():
    for values in ([], [1.0], [5.0] * 10):
        assert dependence.posterior(values) == pytest.approx(dependence.assumed(len(values)))
    assert dependence.pooled([]) is dependence.ASSUMED


@pytest.mark.parametrize("n", [6, 7, 10, 15, 30])
def test_independent_repetitions_are_rarely_said_to_depend(n):
    rows = np.random.default_rng(n).lognormal(0, 1, (1500, n))
    holds_rate(f"silent, n = {n}", [not dependence.is_dependent(row) for row in rows], 0.95)
    # Each of two sides has half of the error.
    halves = [not dependence.is_dependent(row, 0.025) for row in rows]
    holds_rate(f"silent, one of two sides, n = {n}", halves, 0.975)


def test_dependence_is_told_where_it_is_and_not_of_a_word_without_a_test():
    drifting = ar1(np.random.default_rng(4), 200, 30, 0.6)
    assert np.mean([dependence.is_dependent(row) for row in drifting]) > 0.85
    wide = np.where(dependence.GRID == 0.9, 1.0, 0.0)
    assert not dependence.sentence(np.random.default_rng(5).normal(size=10), wide)
    for too_few in ([1.0, 2.0, 3.0, 4.0, 5.0], [7.0] * 20):
        assert not dependence.is_dependent(too_few)


def test_the_test_of_dependence_has_the_moments_of_all_orders():
    values, found = [3.0, 1.0, 1.0, 7.0, 5.0, 9.0, 2.0], []
    ranks = dependence.midranks(np.array(values)) - 4
    for order in permutations(ranks):
        found.append(sum(a * b for a, b in pairwise(order)))
    limit = np.mean(found) + stats.norm.ppf(1 - dependence.NORMAL_TAIL * 0.05) * np.std(found)
    for order in ([1, 1, 2, 3, 5, 7, 9], [1, 2, 1, 3, 5, 9, 7], [9, 1, 7, 1, 5, 2, 3]):
        own = dependence.midranks(np.array(order, dtype=float)) - 4
        assert dependence.is_dependent(order) == (float(own[1:] @ own[:-1]) > limit)


@pytest.mark.parametrize("n", [5, 6, 7, 9])
def test_few_values_cover_without_needless_width(n):
    # At 0.6 they cover 84 to 89 %; 90 % would take twice the width of independent values.
    for rho, promised in ((0.0, 0.95), (0.3, 0.92), (0.6, 0.84)):
        covered, wider = [], []
        for values in ar1(np.random.default_rng(n), by_profile(quick=150, whole=600), n, rho):
            factor = dependence.widening(n, dependence.posterior(values))(0.95)
            half = factor * stats.t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n)
            covered.append(bool(abs(values.mean()) <= half))
            wider.append(factor)
        holds_rate(f"mean, n = {n}, AR(1) {rho}", covered, promised)
        assert rho or np.median(wider) < 1.75


@given(
    st.lists(st.integers(-1000, 1000), min_size=2, max_size=60),
    st.floats(0.5, 0.999),
)
def test_no_factor_narrows_the_classical_interval(values, confidence):
    widening = dependence.widening(len(values), dependence.posterior(values))
    low, high = widening(confidence), widening((1 + confidence) / 2)
    largest = dependence.scales(len(values))[-1]
    assert 1 <= low <= largest * (1 + 1e-9)
    # Intervals of a higher confidence contain those of a lower one.
    levels = (confidence, (1 + confidence) / 2)
    quantiles = [stats.t.ppf((1 + level) / 2, len(values) - 1) for level in levels]
    assert low * quantiles[0] <= high * quantiles[1] * (1 + 1e-9)


def test_a_certain_autocorrelation_scales_students_interval():
    for n in (6, 10, 30):
        for k in (0, 6, 12):
            certain = np.where(np.arange(dependence.GRID.size) == k, 1.0, 0.0)
            factor = dependence.widening(n, certain)(0.95)
            assert factor == pytest.approx(dependence.scales(n)[k], rel=0.01)
            assert dependence.allowed(n, factor) @ dependence.GRID == pytest.approx(
                dependence.GRID[k], abs=0.01
            )


def test_pooling_finds_what_a_lone_series_cannot():
    # 40 settings of two metrics, ten trials: each series alone leaves nearly everything open.
    for rho in (0.0, 0.6):
        rows = ar1(np.random.default_rng(3), 80, 10, rho)
        prior = dependence.pooled(rows.reshape(40, 2, 10))
        assert dependence.autocorrelation(prior) == pytest.approx(rho, abs=0.12)


def test_effective_n_is_near_the_truth():
    # rho 0.5, n = 400: worth 133.
    rows = ar1(np.random.default_rng(2), 100, 400, 0.5)
    worth = [dependence.effective_n(400, dependence.posterior(row)) for row in rows]
    assert np.median(worth) == pytest.approx(133, rel=0.1)


def test_orthants_are_the_known_ones():
    # P(X < 0, Y < 0) = 1/4 + asin(rho) / (2 pi).
    rho = np.array([0.0, 0.5, 0.95])
    assert dependence.normal_orthant(0.0, rho) == pytest.approx(np.arcsin(rho) / (2 * np.pi))
    z = stats.norm.ppf(0.9)
    joint = stats.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]]).cdf([z, z])
    assert dependence.normal_orthant(z, np.array(0.5)) == pytest.approx(joint - 0.81, abs=1e-4)


def test_the_dependence_of_a_difference_is_that_of_the_noisier_side():
    factor = dependence.widening_of_difference
    assert factor(0, [1.0, 3.0]) == pytest.approx(3)
    assert factor(1, [1.0, 3.0]) == pytest.approx(1)
    assert 1 < factor(0.5, [1.0, 3.0]) < factor(0.5, [3.0, 3.0]) == pytest.approx(3)
    quiet, noisy = np.array([1.0, 1.001, 0.999]), np.array([1.0, 5.0, -3.0])
    assert dependence.share_of_variance(quiet, noisy) == pytest.approx(0, abs=1e-6)
    for flat in (np.ones(3), np.full(3, math.inf)):
        assert dependence.share_of_variance(flat, flat) == 0.5


def test_sides_that_vary_alike_count_for_each_others_dependence():
    rng = np.random.default_rng(3)
    drifting, steady = ar1(rng, 1, 10, 0.95)[0], rng.normal(size=10)
    alone = dependence.posterior(drifting)
    alike, _ = dependence.posteriors_of_sides(drifting, steady, 0.5, dependence.ASSUMED)
    assert dependence.autocorrelation(alike) < dependence.autocorrelation(alone)
    unlike, _ = dependence.posteriors_of_sides(drifting, steady, 1.0, dependence.ASSUMED)
    assert unlike == pytest.approx(alone)


@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=60))
def test_bounds_hold_for_everything(values):
    weights = dependence.posterior(values)
    assert weights.sum() == pytest.approx(1)
    assert np.all(weights >= 0)
    assert 1 <= dependence.effective_n(len(values), weights) <= len(values)
    # Backwards, a series depends as much.
    assert dependence.posterior(values[::-1]) == pytest.approx(weights)


@pytest.mark.parametrize(("rho", "promised"), [(0.0, 0.95), (0.6, 0.9)])
@pytest.mark.parametrize("share", [dependence.pooled, dependence.shared])
def test_six_values_cover_when_twelve_series_share_their_dependence(share, rho, promised):
    rng, covered = np.random.default_rng(7), []
    for _ in range(60):
        series = ar1(rng, 12, 6, rho)
        prior = share([values] for values in series)
        for values in series[:4]:
            weights = dependence.posterior(values, prior)
            half = stats.t.ppf(0.975, 5) * values.std(ddof=1) / np.sqrt(6)
            half *= dependence.widening(6, weights)(0.95)
            covered.append(bool(abs(values.mean()) <= half))
    holds_rate(f"{share.__name__}, autocorrelation {rho}", covered, promised)


def test_a_shared_dependence_is_known_better_than_that_of_a_lone_series():
    series = np.random.default_rng(8).normal(size=(12, 6))
    prior = dependence.shared([values] for values in series)

    def median_widening(start):
        weights = [dependence.posterior(values, start) for values in series]
        return np.median([dependence.widening(6, one)(0.95) for one in weights])

    assert median_widening(prior) < 1.1 < 1.2 < median_widening(dependence.ASSUMED)
