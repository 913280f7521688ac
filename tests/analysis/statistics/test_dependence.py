import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.analysis.statistics import dependence


def ar1(rng, rows, n, rho):
    """Stationary AR(1) of unit variance, shape (rows, n)."""
    series = np.empty((rows, n))
    series[:, 0] = rng.normal(0, 1, rows)
    for i in range(1, n):
        series[:, i] = rho * series[:, i - 1] + np.sqrt(1 - rho**2) * rng.normal(0, 1, rows)
    return series


def test_runs_test_is_the_exact_law_of_all_orders():
    # 4 high and 3 low values: every one of the 35 arrangements, counted by hand.
    def runs(order):
        return 1 + sum(x != y for x, y in itertools.pairwise(order))

    arrangements = [
        [1 if i in high else 0 for i in range(8)] for high in itertools.combinations(range(8), 4)
    ]
    counts = [runs(a) for a in arrangements]
    for order in arrangements[:20]:
        seen = runs(order)
        tail = min(
            sum(c <= seen for c in counts) / len(counts),
            sum(c >= seen for c in counts) / len(counts),
        )
        assert dependence.runs_test_p(order) == pytest.approx(min(1, 2 * tail))


def test_nothing_to_test():
    assert dependence.runs_test_p([5.0] * 10) == 1
    assert dependence.lag1([5.0] * 10) == 0
    assert dependence.effective_n([5.0] * 10) == 10
    assert dependence.warning([1.0])[0] is None


def test_one_outlier_cannot_hide_a_drift():
    drift = [*range(30), 1e9]
    assert dependence.lag1(drift) < 0.1
    assert dependence.rank_lag1(drift) > 0.8
    sentence, n_eff = dependence.warning(drift)
    assert "depend on each other" in sentence
    assert n_eff < 5


@pytest.mark.parametrize("n", [10, 20, 30, 100])
def test_independent_repetitions_rarely_warn(n):
    # The bound: 2.5 % by the runs test's upper-dependence tail, plus noise of 1500 series.
    rows = np.random.default_rng(n).lognormal(0, 1, (1500, n))
    warned = np.mean([dependence.warning(row)[0] is not None for row in rows])
    assert warned < 0.025 + 0.01
    assert np.mean([dependence.lag1(row) > 0.1 for row in rows]) > 3 * warned


def test_drifting_repetitions_do_warn():
    rows = ar1(np.random.default_rng(1), 300, 30, 0.9)
    assert np.mean([dependence.warning(row)[0] is not None for row in rows]) > 0.85


def test_effective_n_is_near_the_truth():
    # rho 0.5, n = 400: worth 133.
    rows = ar1(np.random.default_rng(2), 100, 400, 0.5)
    assert np.median([dependence.effective_n(row) for row in rows]) == pytest.approx(133, rel=0.1)


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=60))
def test_bounds_hold_for_everything(values):
    assert -1 <= dependence.lag1(values) <= 1
    assert 0 <= dependence.runs_test_p(values) <= 1
    assert 1 <= dependence.effective_n(values) <= len(values)
    reverse = values[::-1]
    assert dependence.runs_test_p(reverse) == pytest.approx(dependence.runs_test_p(values))
