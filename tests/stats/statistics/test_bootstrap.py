import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.stats.statistics import bootstrap

from ..vectors import A


def means_of(rows):
    return np.mean(rows, axis=-1)


def test_same_seed_same_replicas_and_bounded_chunks(monkeypatch):
    values = np.arange(20.0)
    one = bootstrap.resample(values, means_of, seed=3, resamples=500)
    assert one.size == 500
    assert np.array_equal(one, bootstrap.resample(values, means_of, seed=3, resamples=500))
    monkeypatch.setattr(bootstrap, "CHUNK", 100)  # five rows at once
    assert bootstrap.resample(values, means_of, seed=3, resamples=503).size == 503


def test_replicas_have_the_spread_of_the_mean():
    values = np.random.default_rng(1).normal(0, 1, 50)
    replicas = bootstrap.resample(values, means_of, seed=1, resamples=20_000)
    assert replicas.std() == pytest.approx(values.std() / np.sqrt(50), rel=0.03)


def test_bca_of_symmetric_values_is_near_the_normal_interval():
    values = np.random.default_rng(2).normal(10, 1, 200)
    low, high = bootstrap.bca(values, means_of, confidence=0.95, seed=1, resamples=5000)
    half = 1.96 * values.std(ddof=1) / np.sqrt(200)
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.02)


def test_percentile_interval_widens_for_few_units_and_holds_the_point():
    replicas = np.random.default_rng(3).normal(0, 1, 50_000)
    few = bootstrap.percentile_interval(replicas, 0, 6, 0.95)
    many = bootstrap.percentile_interval(replicas, 0, 10_000, 0.95)
    assert many == pytest.approx((-1.96, 1.96), abs=0.05)
    assert few[0] < -2.5
    assert few[1] > 2.5  # sqrt(6/5) * 2.571 = 2.82
    assert bootstrap.percentile_interval(replicas, 9.0, 6, 0.95)[1] == 9


def bca_of_mean(values, seed=1, resamples=999):
    return bootstrap.bca(
        np.asarray(values, dtype=float), means_of, confidence=0.95, seed=seed, resamples=resamples
    )


def test_interval_of_draws_is_equal_tailed_and_holds_the_point():
    drawn = np.arange(101.0)
    assert bootstrap.interval_of_draws(drawn, 50, 0.9) == pytest.approx((5, 95))
    assert bootstrap.interval_of_draws(drawn, 99, 0.9) == pytest.approx((5, 99))


def test_bca_interval_of_a_mean():
    # Tolerance of bootstraps: 0.5 % of the bound. Many resamples, because seeds alone move the
    # upper bound by 0.2 at 9999.
    low, high = bca_of_mean(A, seed=7, resamples=50_000)
    assert low == pytest.approx(99.47, rel=0.005)
    assert high == pytest.approx(109.4, rel=0.005)
    assert (low, high) == bca_of_mean(A, seed=7, resamples=50_000)


def test_bca_interval_of_strongly_skewed_values():
    # Required: coverage >= 0.90 at sigma 1, n = 30, where t has 0.885; measured before: 0.908.
    # 1500 samples give a standard error of 0.0075, so the bound is 0.90 less one and a half.
    rng = np.random.default_rng(22)
    truth = math.exp(0.5)
    intervals = [bca_of_mean(row, seed=i) for i, row in enumerate(rng.lognormal(0, 1, (1500, 30)))]
    assert np.mean([low <= truth <= high for low, high in intervals]) >= 0.89


@given(st.lists(st.floats(0.5, 1e6), min_size=6, max_size=20, unique=True))
def test_bca_scales_with_the_unit_and_stays_inside_the_values(values):
    low, high = bca_of_mean(values, resamples=199)
    assert bca_of_mean([2 * v for v in values], resamples=199) == pytest.approx((2 * low, 2 * high))
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9
