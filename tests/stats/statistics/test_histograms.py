import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rates import holds_rate

from nephoscope.stats.statistics import histograms
from nephoscope.stats.statistics.dependence import INDEPENDENT
from nephoscope.stats.statistics.values import Refused

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


def test_a_quantile_that_unanswered_requests_reach_is_a_lower_bound():
    """Nine of ten requests are unsent at the end of a second; what they waited is uniform."""
    waited = [float(ms) for ms in range(1, 901)]
    trials = [as_trial([50.0] * 100 + waited)] * 6
    unanswered = [as_trial(waited)] * 6
    for q in (0.5, 0.9, 0.99):
        estimate = histograms.quantile_of_trials(trials, q, unit="ms", unanswered=unanswered)
        assert estimate.censored
        assert estimate.high is None
        assert estimate.low is not None
        assert estimate.value == histograms.quantile(trials, q) >= estimate.low
        assert estimate.note == "5,400 of 6,000 requests had no answer: a lower bound."
        assert histograms.is_censored(trials[0], unanswered[0], q)


def test_requests_that_timed_out_beyond_a_quantile_leave_it_as_it_is():
    """One request of 100 is given up after 10 s: p50 and p90 are known, p99.9 is not."""
    rng = np.random.default_rng(3)
    answered = [np.round(rng.exponential(20.0, 990), 2) + 1 for _ in range(8)]
    trials = [as_trial([*values, *[10_000.0] * 10]) for values in answered]
    unanswered = [as_trial([10_000.0] * 10)] * 8
    for q in (0.5, 0.9):
        plain = histograms.quantile_of_trials(trials, q, unit="ms")
        known = histograms.quantile_of_trials(trials, q, unit="ms", unanswered=unanswered)
        assert (known.value, known.low, known.censored) == (plain.value, plain.low, False)
        assert known.high is not None
    tail = histograms.quantile_of_trials(trials, 0.995, unit="ms", unanswered=unanswered)
    assert (tail.value, tail.censored) == (10_000.0, True)


def test_a_lower_bound_is_never_above_the_true_quantile():
    """Latencies of a queue that grows, known up to the end of the trial only."""
    rng = np.random.default_rng(5)
    trials, unanswered, truth = [], [], []
    for _ in range(6):
        due = np.sort(rng.uniform(0, 1000, 400))
        latency = np.round(due * 4 + rng.exponential(30, 400) + 1)
        known = np.floor(1000 - due) + 1
        is_open = latency > known
        trials.append(as_trial(np.where(is_open, known, latency)))
        unanswered.append(as_trial(known[is_open]))
        truth.append(as_trial(latency))
    for q in (0.05, 0.25, 0.5, 0.9, 0.99):
        estimate = histograms.quantile_of_trials(trials, q, unit="ms", unanswered=unanswered)
        assert estimate.value <= histograms.quantile(truth, q)
        assert estimate.censored or estimate.value == histograms.quantile(truth, q)


def test_an_unanswered_request_that_is_not_among_all_is_refused():
    with pytest.raises(Refused, match="missing among all requests"):
        histograms.is_censored(as_trial([1.0, 2.0]), as_trial([3.0]), 0.5)
