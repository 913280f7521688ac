import numpy as np
import pytest

from nephoscope.analysis import repetitions
from nephoscope.analysis.values import Refused


def normal_quantiles(cov):
    from scipy.special import ndtri

    return 100 * (1 + cov * ndtri((np.arange(1, 501) - 0.5) / 500))


def test_planning():
    assert repetitions.for_mean(5 / 20, 0.05) == pytest.approx(96.04, abs=0.005)
    assert repetitions.for_mean(0.05, 0.01) == pytest.approx(96.04, abs=0.005)
    assert repetitions.for_median(0.05, 0.01) == pytest.approx(150.85, abs=0.005)
    assert repetitions.for_comparison(0.65, 0.8) == pytest.approx(116.28, abs=0.005)


@pytest.mark.parametrize(
    ("cov", "width", "expected", "tolerance"),
    [(0.05, 0.01, 161, 5), (0.05, 0.02, 45, 4), (0.02, 0.01, 30, 1)],
)
def test_confirm(cov, width, expected, tolerance):
    # The answer is a first passage over a bound that moves in steps with n (at CoV 2 % and
    # ±1 % the mean bounds are 0.95 at n = 30, 1.01 at 31, 1.06 at 32, 0.95 at 33): 200 subsets
    # give 28, 30 or 33 by seed, 30 in three of four. So the median of seeds is compared.
    found = [repetitions.confirm(normal_quantiles(cov), width, seed=s) for s in range(3)]
    assert abs(np.median(found) - expected) <= tolerance


def test_confirm_repeats_itself():
    history = normal_quantiles(0.02)
    one = repetitions.confirm(history, 0.01, seed=4)
    assert one == repetitions.confirm(history, 0.01, seed=4)


def test_confirm_says_more_than_there_is():
    assert repetitions.confirm(normal_quantiles(0.5)[::5], 0.01) is None


def test_levels():
    # sqrt(10 / 1 * 4 / 1) = 6.3 iterations a run, sqrt(100 / 10 * 1 / 9) = 1.05 runs a boot.
    assert repetitions.levels([1, 10, 100], [4, 1, 9]) == [7, 2]
    assert repetitions.levels([1, 4], [4, 4]) == [2]
    assert repetitions.levels([10, 1], [0, 4]) == [1]


@pytest.mark.parametrize(
    "call",
    [
        lambda: repetitions.for_mean(0, 0.01),
        lambda: repetitions.for_comparison(0.5),
        lambda: repetitions.levels([1], [1]),
        lambda: repetitions.levels([1, 2], [1, 0]),
        lambda: repetitions.confirm([1.0] * 10, 0.1),
        lambda: repetitions.confirm([0.0] * 40, 0.1),
    ],
)
def test_nonsense_is_refused(call):
    with pytest.raises(Refused):
        call()
