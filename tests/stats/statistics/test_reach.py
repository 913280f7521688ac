"""No interval of any statistic reaches far beyond its data without the words that say so."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephoscope.core.model import Better, Estimate
from nephoscope.stats import arrays, compare, interference
from nephoscope.stats.statistics import estimates, means, ratios, reach
from nephoscope.stats.statistics.values import Refused

VALUES = st.lists(st.floats(1, 1e4), min_size=2, max_size=12)


def holds(estimate: Estimate | None, data_range: float, scale: object = float) -> None:
    """Fails where an interval is too wide, or none is given, without its reason."""
    if estimate is None:
        return
    if estimate.low is None or estimate.high is None:
        assert estimate.note
        return
    low, high = scale(estimate.low), scale(estimate.high)  # type: ignore[operator]
    if reach.NOT_ENOUGH not in estimate.note:
        assert high - low <= reach.MOST_RANGES * data_range * (1 + 1e-6) + 1e-9


@settings(max_examples=30)
@given(VALUES, VALUES)
def test_every_interval_of_one_or_two_samples_stays_near_its_values(
    first: list[float], second: list[float]
) -> None:
    a, b = np.array(first), np.array(second)
    spread = float(np.ptp(a))
    holds(means.mean_t(a, unit="ms"), spread)
    holds(means.mean_t(a, unit="ms", widening=4.0), spread)
    holds(means.mean_of_skewed(a, unit="ms"), spread)
    holds(estimates.median(a, unit="ms"), spread)
    holds(ratios.geometric_mean(a, unit="ms"), float(np.ptp(np.log(a))), math.log)
    differences = float(np.ptp(np.log(a)) + np.ptp(np.log(b)))
    for factor in (1.0, 3.0):
        holds(ratios.log_welch(a, b, 0.95, factor), differences, math.log)
        quotients = np.divide.outer(b, a)
        holds(ratios.ratio_of_means(a, b, "ms", 0.95, factor), float(np.ptp(quotients)))
    holds(compare.independent(a, b, better=Better.LOWER).difference, float(np.ptp(a) + np.ptp(b)))


def test_two_values_have_no_interval_of_their_mean_and_three_have() -> None:
    two = means.mean_t([3.0, 5.0], unit="ms")
    assert (two.low, two.high, two.note) == (
        None,
        None,
        "n = 2: not enough trials for an interval.",
    )
    three = means.mean_t([3.0, 4.0, 5.0], unit="ms")
    assert three.low == pytest.approx(4 - 4.302653 / math.sqrt(3))
    assert means.mean_t([3.0, 5.0, 4.0], unit="ms", widening=2.0).low is None


def test_what_others_are_computed_from_keeps_its_interval() -> None:
    """Without one it would count as exact: more uncertain values would give a surer result."""
    for estimate in (
        ratios.geometric_mean([3.0, 5.0], unit="ms"),
        ratios.log_welch(np.array([3.0, 5.0]), np.array([4.0, 4.5]), 0.95),
    ):
        assert estimate is not None
        assert ratios.log_error(estimate) > 0.5
        assert estimate.note == "n = 2: not enough trials for an interval."


def test_a_certain_difference_is_told_though_its_size_is_not() -> None:
    # A drift of 0.01 % beside a difference of 25 %: eight repetitions decide on that one alone.
    steady = [100 + 0.001 * number for number in range(8)]
    faster = [125 + 0.002 * number for number in range(8)]
    told = compare.paired(steady, faster, better=Better.HIGHER)
    assert told.verdict.word == "better"
    assert any("not enough trials for an interval of the size" in text for text in told.warnings)
    alike = compare.paired(steady, [value * 1.00001 for value in steady[::-1]], better=Better.LOWER)
    assert alike.verdict.word == "equivalent"


def test_ranges_of_ratios_have_no_end_where_the_divisor_may_be_zero() -> None:
    a, b = np.array([1.0, 2.0]), np.array([4.0, 8.0])
    assert reach.range_of_ratios(a, b) == 8 - 2
    assert reach.range_of_ratios(np.array([-1.0, 2.0]), b) == math.inf
    assert reach.range_of_differences(a, b) == 5


def test_two_groups_or_rounds_are_not_enough() -> None:
    with pytest.raises(Refused, match="measure at least 3"):
        arrays.nested([[1.0, 2.0], [3.0, 4.0]])
    triple = interference.Triple(0, 130.0, 100.0, 101.0)
    twice = [triple, interference.Triple(1, 155.0, 100.0, 103.0)]
    factor = interference.factor_of_means(twice, better=Better.LOWER)
    assert factor.low is None
    assert "not enough trials for an interval" in factor.note
