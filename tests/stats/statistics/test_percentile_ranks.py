from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from nephoscope.core.model import Better
from nephoscope.stats.statistics.percentile_ranks import percentile_rank
from nephoscope.stats.statistics.values import Refused

GROUP = np.array([1.0, 2.0, 3.0, 3.0, 4.0])


def test_equal_machines_count_half_and_lower_may_be_better() -> None:
    # Two of five are lower and two equal: (2 + 4) / 2 of 5.
    rank = percentile_rank(GROUP, 3.0, 3.0, 3.0, confidence=0.95)
    assert rank.value == pytest.approx(0.6)
    assert rank.n == 5
    assert rank.confidence == pytest.approx(0.9)
    lower = percentile_rank(GROUP, 3.0, 3.0, 3.0, confidence=0.95, better=Better.LOWER)
    assert lower.value == pytest.approx(1 - rank.value)
    assert (lower.low, lower.high) == pytest.approx((1 - rank.high, 1 - rank.low))


def test_the_interval_has_both_uncertainties_in_it() -> None:
    # Between 1 and 4 machines are lower: those of Wilson's intervals of 1 and of 4 in 5.
    rank = percentile_rank(GROUP, 3.0, 1.5, 3.5, confidence=0.95)
    ends = [binomtest(hits, 5).proportion_ci(method="wilson") for hits in (1, 4)]
    assert (rank.low, rank.high) == pytest.approx((ends[0].low, ends[1].high))


def test_it_covers_the_percentile_among_all_machines_of_such_a_class() -> None:
    # A machine at +0.5 standard deviations of all machines, measured with an error of 0.3.
    rng = np.random.default_rng(5)
    truth, error, covered = 0.5, 0.3, 0
    for _ in range(400):
        measured = rng.normal(truth, error)
        group = rng.normal(size=25)
        half = 1.96 * error
        rank = percentile_rank(group, measured, measured - half, measured + half, confidence=0.95)
        assert rank.low is not None
        assert rank.high is not None
        covered += rank.low <= norm.cdf(truth) <= rank.high
    # 90 % is promised; 400 repetitions of exactly that have a standard error of 1.5 %.
    assert covered / 400 >= 0.9 - 3 * 0.015


def test_what_is_no_rank_is_refused() -> None:
    with pytest.raises(Refused, match="at least one machine"):
        percentile_rank(np.array([]), 1.0, 1.0, 1.0, confidence=0.95)
    with pytest.raises(Refused, match="swapped"):
        percentile_rank(GROUP, 1.0, 2.0, 1.0, confidence=0.95)
