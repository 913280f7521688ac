import numpy as np
import pytest

from nephoscope.analysis import bootstrap


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
