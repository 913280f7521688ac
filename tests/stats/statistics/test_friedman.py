"""Friedman's test against published values and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from nephoscope.stats.statistics import friedman
from nephoscope.stats.statistics.values import Refused

ROWS = np.array(
    [(10, 11, 14), (20, 21, 26), (5, 5.5, 6), (8, 8.2, 9), (30, 29, 35), (12, 13, 15)], dtype=float
)


def test_the_vector_of_six_benchmarks_and_three_systems() -> None:
    test = friedman.friedman(ROWS)
    assert test.chi_square == pytest.approx(10.3333, rel=1e-4)
    assert test.p == pytest.approx(0.005704, rel=1e-4)
    assert test.mean_ranks == pytest.approx((7 / 6, 11 / 6, 3))


def test_ties_are_corrected_as_scipy_does() -> None:
    rows = np.array([[1, 1, 2, 3], [2, 1, 2, 2], [3, 1, 1, 4], [1, 2, 3, 3], [5, 5, 5, 6]], float)
    expected = stats.friedmanchisquare(*rows.T)
    test = friedman.friedman(rows)
    assert (test.chi_square, test.p) == pytest.approx((expected.statistic, expected.pvalue))


def test_equal_columns_are_no_difference() -> None:
    test = friedman.friedman(np.ones((4, 3)))
    assert (test.chi_square, test.p) == (0, 1)


@pytest.mark.parametrize(
    "rows", [np.ones((1, 3)), np.ones((3, 1)), np.array([[1, np.nan], [1, 2]])]
)
def test_too_few_values_and_gaps_are_refused(rows: np.ndarray) -> None:
    with pytest.raises(Refused, match="at least 2 blocks"):
        friedman.friedman(rows)
