import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rates import holds_rate

from nephoscope.analysis.statistics import histograms
from nephoscope.analysis.statistics.dependence import INDEPENDENT
from nephoscope.analysis.statistics.values import Refused

trials = st.lists(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 30)), min_size=1, max_size=10),
    min_size=6,
    max_size=12,
)


def nearest_rank(values, q):
    """The smallest value with at least a share q at or below it."""
    ordered = np.sort(values)
    return ordered[max(0, math.ceil(q * ordered.size - 1e-9) - 1)]


def as_trial(values):
    distinct, counts = np.unique(values, return_counts=True)
    return distinct.astype(float).tolist(), counts.tolist()


def test_merge_sums_counts_of_equal_values():
    values, counts = histograms.merge([([1, 3], [10, 1]), ([3, 2, 3], [1, 5, 1]), ([9], [0])])
    assert values.tolist() == [1, 2, 3]
    assert counts.tolist() == [10, 5, 3]
    assert histograms.merge([])[0].size == 0


def test_quantile_of_trials_together():
    assert histograms.quantile([([10.0], [95]), ([500.0, 10.0], [5, 900])], 0.5) == 10
    assert histograms.quantile([([1.0, 2.0], [1, 1])], 1.0) == 2


def test_percentile_of_a_merge_is_not_the_mean_of_percentiles():
    # Five quiet trials and one with a long tail; p99 of all 600 is the 594th value.
    trials = [([1], [100])] * 5 + [([1, 50], [90, 10])]
    got = histograms.quantile_of_trials(trials, 0.99, unit="ms")
    assert got.value == 50
    mean_of_p99 = np.mean([nearest_rank([1] * 100, 0.99)] * 5 + [50])
    assert mean_of_p99 < 10
    assert got.low == 1  # without the odd trial nothing is above 1
    assert got.n == 6
    assert "600 observations; Student t over 6 trials" in got.method


def test_gates_on_trials_and_on_observations():
    with pytest.raises(Refused, match=r"p99 of 5 trials .* needs 6 trials"):
        histograms.quantile_of_trials([([1], [1000])] * 5, 0.99, unit="ms")
    with pytest.raises(Refused, match=r"p99 of 360 observations .* needs 368"):
        histograms.quantile_of_trials([([1], [60])] * 6, 0.99, unit="ms")
    histograms.quantile_of_trials([([1], [62])] * 6, 0.99, unit="ms")


def test_damaged_histograms_are_refused():
    with pytest.raises(Refused, match="2 values but 1 counts"):
        histograms.merge([([1, 2], [1])])
    with pytest.raises(Refused, match="negative count"):
        histograms.merge([([1], [-1])])
    with pytest.raises(Refused, match="not a number"):
        histograms.merge([([math.nan], [1])])
    with pytest.raises(Refused, match="Trial 6 observed nothing"):
        histograms.quantile_of_trials([([1], [100])] * 5 + [([1], [0])], 0.99, unit="ms")


def test_timeouts_are_at_the_end():
    trials = [([1, math.inf], [95, 5])] * 6
    assert histograms.quantile_of_trials(trials, 0.9, unit="ms").value == 1
    with pytest.raises(Refused, match="timeouts"):
        histograms.quantile_of_trials(trials, 0.99, unit="ms")


def test_interval_covers_when_trials_differ_more_than_requests():
    # Each trial has its own level (sigma 5 %), requests vary little inside it: treating 1000
    # requests as independent would cover almost never. Truth by a large simulation.
    rng = np.random.default_rng(8)

    def observe(trials):
        level = rng.normal(100, 5, (trials, 1))
        return np.round(level + rng.normal(0, 1, (trials, 100)), 1)

    truth = nearest_rank(observe(40_000).ravel(), 0.5)
    hits = []
    for seed in range(300):
        histogram = [as_trial(row) for row in observe(10)]
        got = histograms.quantile_of_trials(histogram, 0.5, unit="ms", seed=seed, resamples=499)
        hits.append(got.low <= truth <= got.high)
    assert np.mean(hits) >= 0.92  # 0.95 less two standard errors


@pytest.mark.parametrize("trials", [6, 20])
def test_interval_of_a_tail_covers_with_few_trials(trials):
    # Effect of the trial 15 %, requests 30 %, both log-normal: the bootstrap covered 0.88 and 0.92.
    rng, truth = np.random.default_rng(trials), math.exp(1.2816 * math.hypot(0.15, 0.3))
    levels = rng.normal(0, 0.15, (200, trials, 1))
    requests = np.exp(levels + rng.normal(0, 0.3, (200, trials, 200)))
    covered = []
    for run in requests:
        got = histograms.quantile_of_trials(
            [(row, np.ones(200)) for row in run], 0.9, unit="ms", prior=INDEPENDENT
        )
        covered.append(got.low <= truth <= got.high)
    holds_rate(f"p90 of {trials} merged histograms", covered, 0.95)


def test_many_buckets_are_fast_enough_to_be_exact():
    # Three significant digits over nine decades are 27 000 buckets.
    rng = np.random.default_rng(9)
    trials = [as_trial(np.round(np.exp(rng.normal(8, 2, 5000)))) for _ in range(12)]
    got = histograms.quantile_of_trials(trials, 0.99, unit="ns")
    # exp(8 + 2 * 2.3263); 60 000 values: standard error of p99 about 3 %
    assert got.value == pytest.approx(math.exp(8 + 2 * 2.32635), rel=0.12)
    assert got.low < got.value < got.high


@given(trials, st.sampled_from([0.1, 0.5, 0.9, 0.99]))
def test_a_histogram_says_what_its_values_say(raw, q):
    histogram = [([v for v, _ in t], [c for _, c in t]) for t in raw]
    values, counts = histograms.merge(histogram)
    flat = np.repeat(values, counts)
    if flat.size:
        assert histograms.quantile_of_counts(values, counts, q) == nearest_rank(flat, q)
    assert counts.sum() == sum(c for t in raw for _, c in t)


@given(trials, st.randoms())
def test_order_of_trials_does_not_matter_to_the_point_and_the_interval_holds_it(raw, random):
    histogram = [([v for v, _ in t], [c + 1 for _, c in t]) for t in raw]
    one = histograms.quantile_of_trials(histogram, 0.5, unit="u", resamples=99)
    random.shuffle(histogram)
    other = histograms.quantile_of_trials(histogram, 0.5, unit="u", resamples=99)
    assert one.value == other.value
    assert one.low <= one.value <= one.high
