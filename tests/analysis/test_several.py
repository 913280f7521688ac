"""More than two systems."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from nephoscope.analysis import several
from nephoscope.analysis.values import Refused

BLOCKS = [
    (10, 11, 14),
    (20, 21, 26),
    (5, 5.5, 6),
    (8, 8.2, 9),
    (30, 29, 35),
    (12, 13, 15),
]


def test_the_vector_of_six_blocks_and_three_systems() -> None:
    found = several.friedman(BLOCKS)
    assert found.statistic == pytest.approx(10.3333, rel=1e-4)
    assert found.p == pytest.approx(0.005704, rel=1e-3)
    assert found.mean_ranks == pytest.approx((7 / 6, 11 / 6, 3))
    assert several.geometric_means(BLOCKS) == pytest.approx((1, 1.05307, 1.23702), rel=1e-4)


def test_nemenyi_parts_the_pairs_by_the_critical_difference() -> None:
    found = several.friedman(BLOCKS)
    assert found.critical_difference is not None
    for (i, j), p in found.pairs.items():
        apart = abs(found.mean_ranks[i] - found.mean_ranks[j])
        assert (p < 0.05) == (apart > found.critical_difference)
    # 2.343 sqrt(k (k + 1) / 6 n): the tabulated value for three systems.
    assert found.critical_difference == pytest.approx(2.343 * np.sqrt(12 / 36), rel=1e-3)


def test_friedman_with_ties_agrees_with_the_library() -> None:
    blocks = [(1, 1, 2), (3, 2, 2), (1, 2, 3), (4, 4, 5), (1, 2, 2)]
    expected = stats.friedmanchisquare(*np.transpose(blocks))
    found = several.friedman(blocks)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue)


def test_kruskal_agrees_with_the_library_and_names_the_odd_one() -> None:
    random = np.random.default_rng(7)
    groups = [random.normal(100, 3, 12), random.normal(100, 3, 15), random.normal(115, 3, 12)]
    expected = stats.kruskal(*groups)
    found = several.kruskal(groups)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue)
    assert found.pairs[(0, 2)] < 0.01
    assert found.pairs[(1, 2)] < 0.01
    assert found.pairs[(0, 1)] > 0.05


def test_equal_systems_are_called_different_as_often_as_is_said() -> None:
    random = np.random.default_rng(11)
    trials = 2000
    alarms = sum(several.friedman_p(random.normal(size=(12, 4)))[1] < 0.05 for _ in range(trials))
    # Binomial standard error of 0.05 over 2000 is 0.005; the chi-squared limit is conservative.
    assert alarms / trials < 0.05 + 3 * 0.005


@pytest.mark.parametrize(
    "blocks",
    [
        [(1, 2, 3)] * 3,
        [(1, 2)] * 6,
        [(1, 2, 3), (1, 2)] * 3,
        [(1, 1, 1)] * 6,
        [(1, 2, float("nan"))] * 6,
    ],
)
def test_too_little_is_refused(blocks: list[tuple[float, ...]]) -> None:
    with pytest.raises(Refused):
        several.friedman(blocks)


def test_a_group_too_small_is_refused() -> None:
    with pytest.raises(Refused):
        several.kruskal([(1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3)])
