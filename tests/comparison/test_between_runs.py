import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.test_compare import drift

from nephoscope.analysis.compare import independent
from nephoscope.analysis.statistics.values import Refused
from nephoscope.comparison import between_runs
from nephoscope.model import Better

VERDICTS = {"better", "worse"}


@pytest.mark.parametrize(("of_a", "of_b"), [(1, 0), (1, 1), (3, 3)])
def test_with_history_equal_machines_rarely_get_a_verdict(of_a, of_b):
    # Runs differ by 10 %, repetitions by 2 %: without the variance between runs nearly every
    # comparison would claim a difference. Margin 0, so the margin does not help.
    # 300 comparisons: 0.05 plus two standard errors.
    rng = np.random.default_rng(of_a + of_b)
    claimed, naive = 0, 0
    for _ in range(300):
        a, b, *others = np.exp(
            rng.normal(0, 0.1, (2 + of_a + of_b, 1)) + rng.normal(0, 0.02, (2 + of_a + of_b, 20))
        )
        history = [float(np.median(run)) for run in others]
        got = between_runs.separate_runs(
            a, b, history[:of_a], history[of_a:], better=Better.LOWER, margin=0
        )
        claimed += got.verdict.word in VERDICTS
        naive += independent(a, b, better=Better.LOWER, margin=0).verdict.word in VERDICTS
        assert "not interleaved" in got.warnings[0]
    assert naive / 300 > 0.7
    assert claimed / 300 <= 0.075


def test_with_history_a_real_difference_is_found():
    rng = np.random.default_rng(4)
    found = 0
    for _ in range(100):
        runs = np.exp(rng.normal(0, 0.01, (8, 1)) + rng.normal(0, 0.01, (8, 20)))
        history = [float(np.median(run)) for run in runs[2:]]
        got = between_runs.separate_runs(
            runs[0], 1.2 * runs[1], history[:3], [1.2 * h for h in history[3:]], better=Better.LOWER
        )
        found += got.verdict.word == "worse"
    assert found > 95


@pytest.mark.parametrize("rho", [0.5, 0.9, 0.98])
def test_drift_inside_the_runs_is_taken_into_the_interval(rho):
    # Two halves of one drifting series: nothing differs. 0.05 plus two standard errors of 200.
    rows = drift(np.random.default_rng(5), 200, 40, rho=rho)
    found = [between_runs.separate_runs(r[:20], r[20:], better=Better.LOWER) for r in rows]
    assert np.mean([c.verdict.word in VERDICTS for c in found]) <= 0.08
    assert all("not interleaved" in c.warnings[0] for c in found)
    # Where the drift leaves no interval at all, that is what is said instead.
    assert all("lower bound" in c.warnings[1] or c.ratio.low is None for c in found)
    assert np.mean(["lower bound" in c.warnings[1] for c in found]) > 0.25


def test_without_history_equivalence_is_never_claimed():
    a, b = np.random.default_rng(6).normal(100, 0.1, (2, 30))
    assert independent(a, b, better=Better.LOWER).verdict.word == "equivalent"
    got = between_runs.separate_runs(a, b, better=Better.LOWER)
    assert got.verdict.word == "inconclusive"
    assert "looks like A" in got.verdict.sentence
    known = between_runs.separate_runs(a, b, [100.0, 100.02], [99.98], better=Better.LOWER)
    assert known.verdict.word in {"equivalent", "different but negligible"}


def test_without_history_only_a_large_difference_is_called():
    a, b = np.random.default_rng(7).normal(100, 0.5, (2, 20))
    got = between_runs.separate_runs(a, 1.5 * b, better=Better.HIGHER, names=("old", "new"))
    assert got.verdict.word == "better"
    assert "new is better than old" in got.verdict.sentence
    assert "not interleaved" in got.verdict.sentence
    assert got.p == got.p_between_runs


def test_short_runs_without_history_get_no_verdict():
    got = between_runs.separate_runs([1, 2, 3, 4, 5], [10, 20, 30, 40, 50], better=Better.LOWER)
    assert got.verdict.word == "inconclusive"
    assert "interleave them" in got.verdict.sentence


def test_edges():
    zero = between_runs.separate_runs([0.0] * 8, [0.0, 1] * 4, [0.0], better=Better.LOWER)
    assert zero.verdict.word == "inconclusive"
    flat = between_runs.separate_runs([5.0] * 8, [5.0] * 8, [5.0], better=Better.LOWER)
    assert flat.p_between_runs == 1
    assert flat.verdict.word == "equivalent"
    late = [*range(100, 119), math.inf]
    assert between_runs.separate_runs(late, late, [109.0], better=Better.LOWER).ratio is not None
    with pytest.raises(Refused, match="timeouts"):
        between_runs.separate_runs(late, late, [math.inf], better=Better.LOWER)


@given(
    st.lists(st.floats(1, 100), min_size=8, max_size=20),
    st.lists(st.floats(1, 100), min_size=8, max_size=20),
    st.lists(st.floats(1, 100), max_size=4),
)
def test_the_interval_is_never_narrower_than_that_of_independent_runs(a, b, history):
    plain = independent(a, b, better=Better.LOWER).ratio
    got = between_runs.separate_runs(a, b, history, better=Better.LOWER).ratio
    if plain.low is not None:
        assert got.low <= plain.low
        assert got.high is None or got.high >= plain.high
        assert got.low <= got.value
