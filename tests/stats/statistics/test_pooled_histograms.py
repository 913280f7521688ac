import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.stats.statistics import histograms
from nephoscope.stats.statistics.pooled_histograms import nearest_ranks, pooled
from nephoscope.stats.statistics.values import Refused

quantiles = st.sampled_from([0.001, 0.1, 0.5, 0.9, 0.99, 1.0])
trials = st.lists(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 20)), min_size=1, max_size=8).map(
        lambda buckets: ([v for v, _ in buckets], [c for _, c in buckets])
    ),
    min_size=2,
    max_size=9,
)


def by_table(trials, q, drawn):
    """The quantile of each draw from the table of all buckets of all trials."""
    values = sorted({value for own, _ in trials for value in own})
    table = np.zeros((len(trials), len(values)), dtype=np.int64)
    for row, (own, counts) in enumerate(trials):
        for value, count in zip(own, counts, strict=True):
            table[row, values.index(value)] += count
    cumulative = np.cumsum(drawn @ table, axis=1)
    ranks = nearest_ranks(cumulative[:, -1], q)
    return [
        values[int(np.argmax(row >= rank))] for row, rank in zip(cumulative, ranks, strict=True)
    ]


@given(trials, quantiles, st.integers(0, 99))
def test_closed_forms_are_equal_to_the_table_of_all_buckets(raw, q, seed):
    if not all(sum(counts) for _, counts in raw):
        with pytest.raises(Refused, match="observed nothing"):
            pooled(raw).quantiles(q)
        return
    together, k = pooled(raw), len(raw)
    one, without = np.eye(k, dtype=np.int64), 1 - np.eye(k, dtype=np.int64)
    drawn = np.random.default_rng(seed).multinomial(k, np.full(k, 1 / k), size=5)
    assert together.quantiles(q).tolist() == by_table(raw, q, one)
    assert together.quantiles_without_each(q).tolist() == by_table(raw, q, without)
    assert together.quantiles_of_draws(q, drawn).tolist() == by_table(raw, q, drawn)
    assert together.totals.tolist() == [sum(counts) for _, counts in raw]


def test_draws_in_parts_are_the_draws_at_once(monkeypatch):
    raw = [([10.0, 20.0 + trial % 3, np.inf], [50, 40, trial % 7 * 9]) for trial in range(12)]
    at_once = histograms.quantile_of_trials(raw, 0.7, unit="ms")
    assert "bootstrap" in at_once.method
    monkeypatch.setattr(histograms, "CHUNK", 100)
    assert histograms.quantile_of_trials(raw, 0.7, unit="ms") == at_once


def test_memory_grows_with_the_trials_and_not_with_their_square():
    def peak_bytes(k):
        rng = np.random.default_rng(k)
        raw = [(np.sort(rng.choice(500, 20, False)) + 1.0, np.full(20, 30)) for _ in range(k)]
        tracemalloc.start()
        histograms.quantile_of_trials(raw, 0.99, unit="ms")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    # Twice the trials have twice the buckets; the square of 2,000 trials alone takes 32 MB.
    small, large = peak_bytes(1000), peak_bytes(2000)
    assert large <= 2.3 * small
    assert large < 8e6
