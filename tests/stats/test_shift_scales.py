import math

import numpy as np
import pytest

from nephoscope.stats import shift_scales
from nephoscope.stats.verdicts import NO_BAND, Band


def test_values_above_zero_are_taken_by_logarithm():
    scale = shift_scales.scale_of(np.array([1.0, 2]), np.array([3.0, 6]))
    assert scale.ratio(float(scale.b[0] - scale.a[0])) == pytest.approx(3)
    assert scale.ratio(scale.to_shift(1.03)) == pytest.approx(1.03)
    assert scale.band(None, None) == NO_BAND


def test_timeouts_tie_with_each_other_and_beat_the_rest():
    scale = shift_scales.scale_of(np.array([1.0, math.inf]), np.array([1e9, math.inf]))
    assert scale.b[1] - scale.a[1] == 0
    assert scale.ratio(float(scale.b[1] - scale.a[0])) == math.inf
    assert scale.ratio(float(scale.b[0] - scale.a[1])) == 0


def test_zeros_are_taken_as_shares_of_the_median():
    scale = shift_scales.scale_of(np.array([0.0, 10, 20]), np.array([0.0, 11, 22]))
    assert scale.ratio(float(scale.b[1] - scale.a[1])) == pytest.approx(1.1)
    assert "shares" in scale.words
    assert shift_scales.scale_of(np.array([0.0, 0, 1]), np.array([1.0, 2, 3])) is None
    assert shift_scales.scale_of(np.zeros(5), np.zeros(5)).ratio(0.0) == 1


def test_estimates_of_open_bands():
    assert shift_scales.band_estimate(math.inf, NO_BAND, 0.95, 5, "m") is None
    assert "not enough trials" in shift_scales.band_estimate(2.0, NO_BAND, 0.95, 5, "m").note
    assert shift_scales.band_estimate(2.0, Band(1, math.inf), 0.95, 5, "m").high is None
