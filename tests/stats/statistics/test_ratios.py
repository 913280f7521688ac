import math

import numpy as np
import pytest

from nephoscope.stats.statistics import ratios

a, b = np.array([10.0, 12, 11, 13]), np.array([20.0, 23, 22, 27])


def test_rates_are_inverted_first():
    times = ratios.ratio_of_means(a, b, "s", 0.95)
    assert times.value == pytest.approx(b.mean() / a.mean())
    rates = ratios.ratio_of_means(a, b, "bytes_per_s", 0.95)
    assert rates.value == pytest.approx((1 / a).mean() / (1 / b).mean())
    assert "harmonic" in rates.method
    swapped = ratios.ratio_of_means(1 / b, 1 / a, "s", 0.95)
    assert (swapped.low, swapped.high) == pytest.approx((rates.low, rates.high))


def test_what_cannot_be_bounded_is_said():
    unbounded = ratios.ratio_of_means(np.array([-5.0, 5, 1]), b, "s", 0.95)
    assert (unbounded.low, unbounded.high) == (None, None)
    assert "Unbounded" in unbounded.note
    assert ratios.ratio_of_means(np.array([-5.0, 5]), b, "s", 0.95) is None
    assert ratios.ratio_of_means(a, np.array([1, math.inf]), "s", 0.95) is None


def test_geometric_means():
    paired, p = ratios.log_t(a, b, 0.95)
    welch = ratios.log_welch(a, b, 0.95)
    expected = math.exp(np.mean(np.log(b / a)))
    assert (paired.value, welch.value) == pytest.approx((expected, expected))
    assert paired.high - paired.low < welch.high - welch.low
    assert p < 0.001
    assert ratios.log_t(a, 2 * a, 0.95)[0].value == pytest.approx(2)
    assert ratios.log_welch(np.ones(3), 2 * np.ones(3), 0.95).low == pytest.approx(2)
    assert ratios.log_t(-a, b, 0.95) == (None, None)


def test_p_of_means_exists_only_where_something_varies():
    assert ratios.p_welch(a, b) < 0.01
    assert ratios.p_welch(np.ones(3), np.ones(3)) is None
