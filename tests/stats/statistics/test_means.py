import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rates import holds_rate

from nephoscope.stats.statistics import means, reach
from nephoscope.stats.statistics.means import Summary
from nephoscope.stats.statistics.values import Refused

from ..vectors import A, B

QUIET = Summary(1716.48, 5.39, 100)  # ms; Delgado 2010, table 3.2
DISTURBED = Summary(1754.90, 41.47, 100)


def test_mean_with_t_interval():
    a = means.mean_t(A, unit="ms")
    assert means.summary(A).s == pytest.approx(8.24621, rel=1e-6)
    assert a.value == pytest.approx(102)
    assert (a.low, a.high) == pytest.approx((97.4334, 106.5666), rel=1e-6)
    assert "skewed" in a.note
    assert means.mean_t(B, unit="ms").value == pytest.approx(108.2)


def test_numbers_far_from_zero_keep_their_digits():
    # The pattern of NIST's NumAcc4: 10000000.2, then 500 times 10000000.1 and 10000000.3.
    values = [10000000.2, *([10000000.1, 10000000.3] * 500)]
    got = means.summary(values)
    assert got.mean == pytest.approx(10000000.2, abs=1e-8)
    assert got.s == pytest.approx(0.1, abs=1e-8)


def test_welch_of_the_two_series():
    test = means.welch(means.summary(A), means.summary(B))
    assert test.difference == pytest.approx(6.2)
    assert test.t == pytest.approx(1.9375, rel=1e-4)
    assert test.df == pytest.approx(27.6371, rel=1e-4)
    assert test.p == pytest.approx(0.06297, abs=5e-6)
    assert test.interval(0.95) == pytest.approx((-0.3588, 12.7588), abs=5e-5)


def test_welch_from_summaries_alone():
    test = means.welch(QUIET, DISTURBED)
    assert test.interval(0.9) == pytest.approx((31.48, 45.36), abs=0.005)
    assert (test.t, test.df) == pytest.approx((9.187, 102.34), rel=1e-4)
    assert test.interval(0.95) == pytest.approx((30.13, 46.71), abs=0.005)


def test_fieller_interval_and_its_unbounded_case():
    a, b = means.summary(A), means.summary(B)
    low, high = means.fieller(a, b)
    # By the printed formula: t(27.637) = 2.04961, v = 8.24621^2 / 15 and 9.25357^2 / 15.
    t, v1, v2, r = 2.049613, a.s**2 / 15, b.s**2 / 15, 108.2 / 102
    g = t**2 * v1 / 102**2
    half = t / 102 * math.sqrt(v2 + r**2 * v1 - g * v2) / (1 - g)
    assert (low, high) == pytest.approx((r / (1 - g) - half, r / (1 - g) + half), rel=1e-6)
    assert means.fieller(Summary(1, 10, 5), Summary(2, 10, 5)) is None
    assert means.fieller(Summary(0, 1, 5), Summary(2, 1, 5)) is None
    assert means.fieller(Summary(2, 0, 5), Summary(3, 0, 5)) == (1.5, 1.5)


def test_neither_side_varies():
    with pytest.raises(Refused, match="Neither side varies"):
        means.welch(Summary(1, 0, 5), Summary(2, 0, 5))


def test_one_value_and_equal_values():
    assert means.mean_t([3], unit="ms").low is None
    flat = means.mean_t([3] * 8, unit="ms")
    assert (flat.low, flat.high) == (3, 3)
    assert "too coarse" in flat.note


@pytest.mark.parametrize(("sigma", "expected"), [(0.5, 0.935), (1.0, 0.885)])
def test_t_interval_of_skewed_values_undercovers_and_says_so(sigma, expected):
    rng = np.random.default_rng(21)
    values = rng.lognormal(0, sigma, (20_000, 30))
    half = means.t_quantile(29, 0.95) * values.std(axis=1, ddof=1) / math.sqrt(30)
    covered = np.mean(np.abs(values.mean(axis=1) - math.exp(sigma**2 / 2)) <= half)
    assert covered == pytest.approx(expected, abs=0.01)  # 4 standard errors of both simulations
    warned = np.mean([bool(means.skewed_note(row)) for row in values[:1000]])
    assert warned > (0.65 if sigma == 0.5 else 0.95)
    calm = np.mean([bool(means.skewed_note(row)) for row in rng.normal(0, 1, (1000, 30))])
    assert calm < 0.08  # two standard errors: 5 % of normal samples


@given(st.lists(st.floats(0.5, 1e6), min_size=2, max_size=40))
def test_t_interval_is_symmetric_and_grows_with_confidence(values):
    narrow = means.mean_t(values, unit="u", confidence=0.9)
    wide = means.mean_t(values, unit="u", confidence=0.99)
    if wide.low is None:  # only because it would reach too far beyond the values
        half = means.t_quantile(len(values) - 1, 0.99) * np.std(values, ddof=1)
        assert 2 * half / math.sqrt(len(values)) > reach.MOST_RANGES * np.ptp(values)
        assert len(values) <= 4
        return
    assert wide.low <= narrow.low <= narrow.value <= narrow.high <= wide.high
    assert wide.high - wide.value == pytest.approx(wide.value - wide.low, abs=1e-6)


def test_an_interval_of_times_is_cut_at_none() -> None:
    values = [0.1, 0.2, 14.0]
    free, cut = (means.mean_t(values, unit="ms", least=least) for least in (-math.inf, 0.0))
    assert free.low is not None
    assert free.low < 0
    assert (cut.low, cut.high, cut.value) == (0.0, free.high, free.value)
    assert means.least_of(values) == 0.0
    assert means.least_of([-0.1, 0.2]) == -math.inf == means.least_of([])


@pytest.mark.parametrize("n", [6, 10, 20])
def test_means_of_skewed_values_cover(n):
    rng = np.random.default_rng(n)
    for name, rows, truth in (
        ("normal", rng.normal(10, 1, (1500, n)), 10.0),
        ("log-normal", rng.lognormal(0, 0.5, (1500, n)), math.exp(0.125)),
        ("exponential", rng.exponential(1, (1500, n)), 1.0),
    ):
        found = [means.mean_of_skewed(row, unit="") for row in rows]
        covered = [one.low <= truth <= one.high for one in found]
        holds_rate(f"mean, {name}, n = {n}", covered, 0.93)


def test_means_without_skewness_are_students_and_few_values_too():
    for values in ([1.0, 2, 3, 4, 5, 6, 7], [1.0, 1, 5], [3.0] * 8):
        plain, corrected = (how(values, unit="s") for how in (means.mean_t, means.mean_of_skewed))
        assert (corrected.low, corrected.high) == pytest.approx((plain.low, plain.high), rel=1e-4)
    skewed = means.mean_of_skewed([1.0, 1, 1, 1, 1, 2, 9], unit="s", least=0.0)
    assert skewed.low >= 0
    assert skewed.high > means.mean_t([1.0, 1, 1, 1, 1, 2, 9], unit="s").high


def test_mirrored_values_have_the_mirrored_interval():
    values = np.random.default_rng(3).exponential(1, 9)
    one, other = (means.mean_of_skewed(sign * values, unit="s") for sign in (1, -1))
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))
