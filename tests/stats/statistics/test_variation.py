import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import by_profile
from tests.rates import allowance

from nephoscope.stats.statistics import variation
from nephoscope.stats.statistics.values import Refused

from ..vectors import A


def test_measures_of_variation_of_the_series():
    got = variation.consistency(A)
    assert got.cv == pytest.approx(0.080845, abs=5e-7)
    assert got.robust_cv == pytest.approx(0.029652, abs=5e-7)
    assert got.quartile_dispersion == pytest.approx(0.019900, abs=5e-7)
    assert got.low < got.robust_cv < got.high
    assert got.word == "variable"
    assert got == variation.consistency(A)


@pytest.mark.parametrize(
    ("cv", "low", "high"), [(2.36310, 2.0747, 2.7454), (0.31401, 0.2757, 0.3648)]
)
def test_vangel_interval(cv, low, high):
    # Per cent; n = 100.
    got = variation.vangel(cv / 100, 100)
    assert (100 * got[0], 100 * got[1]) == pytest.approx((low, high), abs=5.1e-5)


def test_small_sample_factor():
    values = np.array([1.0, 2.0, 3.0])
    plain = variation.cv_point(values)
    assert plain == 0.5
    assert variation.cv_point(values, corrected=True) == pytest.approx(0.5 * (1 + 1 / 12))


@pytest.mark.parametrize(
    ("noise", "word"), [(0.004, "steady"), (0.05, "variable"), (0.4, "erratic")]
)
def test_words(noise, word):
    values = np.random.default_rng(1).lognormal(0, noise, 40)
    assert variation.consistency(values).word == word


def test_ten_repetitions_of_quiet_noise_are_steady():
    rows = np.random.default_rng(2).normal(100, 0.3, (50, 10))
    assert np.mean([variation.consistency(row).word == "steady" for row in rows]) > 0.9


@pytest.mark.parametrize("n", [10, 30])
@pytest.mark.parametrize("law", ["normal", "lognormal"])
def test_robust_cv_interval_covers(n, law):
    rng = np.random.default_rng(n)
    draw = (
        (lambda size: rng.normal(1, 0.05, size))
        if law == "normal"
        else (lambda size: rng.lognormal(0, 0.5, size))
    )
    series = by_profile(quick=60, whole=250)
    truth = float(variation.robust_cv(np.sort(draw(2_000_000))))
    got = [variation.consistency(row, seed=i) for i, row in enumerate(draw((series, n)))]
    covered = np.mean([c.low <= truth <= c.high for c in got])
    # 0.95 less two standard errors of 250 series
    assert covered >= 0.92 - allowance(series, 250)


@pytest.mark.parametrize(
    "values", [[], [1.0] * 5, [-1, 1, -2, 2, -3, 3, 0], [0.0] * 10, [1.0] * 3 + [math.inf] * 9]
)
def test_no_ratio_no_word(values):
    assert variation.consistency(values) == variation.UNKNOWN


def test_equal_values_are_steady():
    got = variation.consistency([3.0] * 8)
    assert (got.robust_cv, got.cv, got.low, got.high, got.word) == (0, 0, 0, 0, "steady")


def test_a_timeout_leaves_the_robust_measure_alone():
    got = variation.consistency([*A, math.inf])
    assert got.cv is None
    assert got.robust_cv < 0.05


def test_coefficient_of_variation_picks_its_interval():
    normal = np.random.default_rng(4).normal(10, 1, 60)
    assert "Vangel" in variation.coefficient_of_variation(normal).method
    assert "BCa" in variation.coefficient_of_variation(A).method
    flat = variation.coefficient_of_variation([2.0] * 9)
    assert (flat.value, flat.low, flat.high) == (0, 0, 0)


def test_standard_deviation_covers_as_often_as_it_says():
    draws = np.random.default_rng(8).normal(100, 5, (400, 20))
    found = [variation.standard_deviation(row, unit="ms") for row in draws]
    covered = sum(one.low <= 5 <= one.high for one in found)
    # 400 draws at 95 %: three standard errors are 13; the bootstrap of what looks skewed is short.
    assert 360 <= covered <= 396
    assert sum("chi-square" in one.method for one in found) > 300
    assert found[0].unit == "ms"


def test_standard_deviation_of_a_summary_is_the_textbooks():
    # s = 41.47, n = 100: sqrt(99 / 128.42) and sqrt(99 / 73.36) times s.
    low, high = variation.deviation_interval(41.47, 100)
    assert (low, high) == pytest.approx((36.41, 48.17), abs=0.01)
    flat = variation.standard_deviation([2.0] * 9, unit="ms")
    assert (flat.value, flat.low, flat.high) == (0, 0, 0)
    assert "BCa" in variation.standard_deviation(A, unit="ms").method


@pytest.mark.parametrize("values", [[-3, 2, 1, -1, 0.5, -0.2], [0, 0, 0, 0, 0, 0, 1, 0]])
def test_coefficient_of_variation_is_refused_near_a_mean_of_zero(values):
    with pytest.raises(Refused, match="no meaning"):
        variation.coefficient_of_variation(values)


def test_ratio_of_robust_cvs():
    rng = np.random.default_rng(6)
    quiet, loud = rng.normal(100, 1, 40), rng.normal(300, 30, 40)
    ratio = variation.ratio_of_robust_cv(quiet, loud)
    assert ratio.low > 3
    assert ratio.low <= 10 <= ratio.high
    twin = variation.ratio_of_robust_cv(quiet, 3 * rng.normal(100, 1, 40))
    assert twin.low <= 1 <= twin.high
    with pytest.raises(Refused, match="does not vary"):
        variation.ratio_of_robust_cv([1.0] * 8, loud)


@given(
    st.lists(st.integers(1, 10_000), min_size=6, max_size=25),
    st.sampled_from([0.25, 2.0, 64.0]),
)
def test_ratios_do_not_depend_on_the_unit(values, factor):
    one = variation.consistency([float(v) for v in values])
    other = variation.consistency([v * factor for v in values])
    assert one.robust_cv == pytest.approx(other.robust_cv)
    assert one.low == pytest.approx(other.low)
    assert one.word == other.word
    assert one.low <= one.robust_cv
    assert one.high is None or one.robust_cv <= one.high
