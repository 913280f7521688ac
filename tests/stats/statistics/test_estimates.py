import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rates import holds_rate

from nephoscope.stats.statistics import estimates, means
from nephoscope.stats.statistics.dependence import INDEPENDENT
from nephoscope.stats.statistics.values import Refused

from ..vectors import A, B

finite_series = st.lists(
    st.floats(min_value=-1e9, max_value=1e9, allow_subnormal=False), min_size=6, max_size=80
)


def test_median_of_the_two_series_with_ranks_and_attained_coverage():
    a = estimates.median(A, unit="ms", prior=INDEPENDENT)
    assert (a.value, a.low, a.high, a.n, a.unit) == (100, 98, 103, 15, "ms")
    assert "4 and 12 of 15" in a.method
    assert "0.9648" in a.method
    b = estimates.median(B, unit="ms", prior=INDEPENDENT)
    assert (b.value, b.low, b.high) == (106, 104, 109)
    assert estimates.rank_bounds(15, 0.5, 0.95)[2] == pytest.approx(0.964844, abs=1e-6)


@pytest.mark.parametrize(
    ("n", "q", "ranks", "coverage"),
    [
        (10, 0.5, (2, 9), 0.97852),
        (20, 0.5, (6, 15), 0.95861),
        (100, 0.5, (40, 61), 0.96480),
        (1000, 0.5, (469, 532), None),
        (100, 0.95, (90, 100), None),
        (1000, 0.99, (983, 997), None),
    ],
)
def test_ranks_of_quantile_intervals(n, q, ranks, coverage):
    low, high, attained = estimates.rank_bounds(n, q, 0.95)
    assert (low, high) == ranks
    assert attained >= 0.95
    if coverage:
        assert attained == pytest.approx(coverage, abs=5e-6)


@pytest.mark.parametrize(
    ("q", "one_sided", "two_sided"),
    [(0.9, 29, 36), (0.95, 59, 72), (0.99, 299, 368), (0.999, 2995, 3688)],
)
def test_smallest_n_at_95_percent(q, one_sided, two_sided):
    assert estimates.minimum_n(q) == two_sided
    low, high, _ = estimates.rank_bounds(two_sided, q, 0.95)
    assert (low >= 1, high <= two_sided) == (True, True)
    low, high, _ = estimates.rank_bounds(two_sided - 1, q, 0.95)
    assert low < 1 or high > two_sided - 1
    assert estimates.rank_bounds(one_sided, q, 0.9)[1] <= one_sided
    assert estimates.rank_bounds(one_sided - 1, q, 0.9)[1] > one_sided - 1


def test_one_value_has_no_interval_at_any_confidence():
    assert estimates.minimum_n(0.5, 1e-300) == 2
    assert estimates.median([5.0], unit="ms", confidence=1e-300).low is None


def test_median_needs_six_for_an_interval():
    assert estimates.minimum_n(0.5) == 6
    five = estimates.median([5, 1, 4, 2, 3], unit="ms")
    assert (five.value, five.low, five.high) == (3, None, None)
    assert "needs 6 repetitions" in five.note
    six = estimates.median([5, 1, 4, 2, 3, 6], unit="ms", prior=INDEPENDENT)
    assert (six.value, six.low, six.high, six.note) == (3.5, 1, 6, "")


def test_timeouts_are_infinite_for_ranks_and_refuse_a_mean():
    values = [*range(1, 19), math.inf, math.inf]
    median = estimates.median(values, unit="s", prior=INDEPENDENT)
    assert (median.value, median.low, median.high) == (10.5, 6, 15)
    with pytest.raises(Refused, match="2 of 20 values are timeouts"):
        means.mean_t(values, unit="s")
    beyond = estimates.median([1, 2, 3, 4, 5, 6, math.inf, math.inf], unit="s")
    assert beyond.high is None
    assert "beyond the timeout" in beyond.note
    with pytest.raises(Refused, match="Half or more"):
        estimates.median([1, 2, 3, math.inf, math.inf, math.inf], unit="s")


@pytest.mark.parametrize("bad", [math.nan, -math.inf])
def test_not_a_number_is_refused_with_a_sentence(bad):
    with pytest.raises(Refused, match="1 of 7 values are not a number; missing is not zero"):
        estimates.median([1, 2, 3, 4, 5, 6, bad], unit="ms")


def test_no_values_and_wrong_shapes_are_refused():
    with pytest.raises(Refused, match="too few"):
        estimates.median([], unit="ms")
    with pytest.raises(Refused, match="one series"):
        estimates.median(np.ones((3, 3)), unit="ms")


def test_equal_values_have_no_width_and_say_why():
    flat = estimates.median([7.0] * 12, unit="ns")
    assert (flat.value, flat.low, flat.high) == (7, 7, 7)
    assert "timer or counter may be too coarse" in flat.note


def test_dependent_repetitions_widen_the_interval_and_say_so():
    drift = np.cumsum(np.random.default_rng(3).normal(0, 1, 60)) + 100
    plain = estimates.median(drift, unit="ms", prior=INDEPENDENT)
    wide = estimates.median(drift, unit="ms")
    assert "depend on each other" in wide.note
    assert wide.autocorrelation > 0.8
    assert wide.effective_n < 10
    assert wide.low < plain.low
    assert wide.high > plain.high
    calm = np.random.default_rng(4).normal(100, 1, 60)
    assert estimates.median(calm, unit="ms").note == ""
    assert plain.autocorrelation is None


def test_ten_repetitions_that_drift_still_have_an_interval():
    found = estimates.median(np.arange(10.0) + 50, unit="ms")
    assert (found.low, found.high) == (50, 59)
    assert "lower bound" in found.note
    tail = estimates.quantile(np.arange(40.0), 0.9, unit="ms")
    assert tail.value == 35
    assert tail.high > 39
    timed_out = estimates.median([*np.arange(8.0), math.inf, math.inf], unit="ms")
    assert timed_out.high is None


@given(finite_series)
def test_the_interval_of_a_median_never_leaves_the_values(values):
    found = estimates.median(values, unit="u")
    assert found.low is None or min(values) <= found.low <= found.high <= max(values)


def test_tied_values_keep_the_closed_bounds_of_the_ranks():
    rng, covered = np.random.default_rng(12), []
    for values in np.round(rng.normal(10, 1, (1500, 10))):
        plain = estimates.median(values, unit="u", prior=INDEPENDENT)
        found = estimates.median(values, unit="u")
        assert found.low <= plain.low
        assert found.high >= plain.high
        covered.append(found.low <= 10 <= found.high)
    holds_rate("median of whole numbers", covered, 0.95)


def test_median_interval_covers_lognormal_values():
    # Required: at least 0.95 for sigma 0.5, n = 30 (exact coverage of ranks 10 and 21: 0.957).
    rng = np.random.default_rng(11)
    ordered = np.sort(rng.lognormal(0, 0.5, (40_000, 30)), axis=1)
    low, high, attained = estimates.rank_bounds(30, 0.5, 0.95)
    covered = np.mean((ordered[:, low - 1] <= 1) & (ordered[:, high - 1] >= 1))
    assert covered >= 0.95
    assert covered == pytest.approx(attained, abs=4 * math.sqrt(0.05 * 0.95 / 40_000))


@given(finite_series, st.sampled_from([0.8, 0.9, 0.95]), st.randoms())
def test_median_interval_holds_the_median_and_may_ignore_the_order(values, confidence, random):
    found = estimates.median(values, unit="u", confidence=confidence)
    assert found.low <= found.value <= found.high
    alone = estimates.median(values, unit="u", confidence=confidence, prior=INDEPENDENT)
    shuffled = list(values)
    random.shuffle(shuffled)
    again = estimates.median(shuffled, unit="u", confidence=confidence, prior=INDEPENDENT)
    assert again == alone


@given(finite_series)
def test_median_interval_grows_with_confidence(values):
    narrow = estimates.median(values, unit="u", confidence=0.8)
    wide = estimates.median(values, unit="u", confidence=0.95)
    assert wide.low <= narrow.low
    assert narrow.high <= wide.high


@given(finite_series, st.sampled_from([0.5, 2.0, 1024.0]))
def test_median_follows_the_unit(values, factor):
    # Powers of two, so that scaling is exact.
    one = estimates.median(values, unit="u")
    other = estimates.median([v * factor for v in values], unit="u")
    assert other.low == pytest.approx(one.low * factor)
    assert other.value == one.value * factor
    assert other.high == pytest.approx(one.high * factor)
