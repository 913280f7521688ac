import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.stats.statistics import pair_order
from nephoscope.stats.statistics.pair_order import order_of_differences, order_of_means

samples = st.lists(
    st.floats(-1e6, 1e6) | st.integers(-9, 9).map(float), min_size=2, max_size=25
).map(np.sort)


def by_counting(count, k, low, high):
    """The same bisection, with a count of all pairs in each step."""
    for _ in range(pair_order.STEPS):
        middle = low + (high - low) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if count(middle) >= k else (middle, high)
    return high


@given(samples, samples, st.floats(0, 1))
def test_differences_are_those_of_counting_all_pairs(a, b, share):
    def count(x):
        return int(np.searchsorted(b, a + x, side="right").sum())

    k = 1 + round(share * (a.size * b.size - 1))
    expected = by_counting(count, k, float(b[0] - a[-1]), float(b[-1] - a[0]))
    assert order_of_differences(a, b)(k) == expected


@given(samples, st.floats(0, 1))
def test_means_are_those_of_counting_all_pairs(d, share):
    def count(x):
        pairs = int(np.searchsorted(d, 2 * x - d, side="right").sum())
        return (pairs + int(np.searchsorted(d, x, side="right"))) // 2

    k = 1 + round(share * (d.size * (d.size + 1) // 2 - 1))
    assert order_of_means(d)(k) == by_counting(count, k, float(d[0]), float(d[-1]))


@pytest.mark.parametrize("rounded", [False, True])
def test_work_doubles_with_the_values(monkeypatch, rounded):
    def looked_at(n):
        rng = np.random.default_rng(n)
        a, b = (np.sort(rng.lognormal(0, 0.3, n)) for _ in range(2))
        a, b = (a.round(2), b.round(2)) if rounded else (a, b)
        values = 0

        def counting(own, x):
            nonlocal values
            values += own.size
            return own + x

        order = pair_order.PairOrder(a, b, float(b[0] - a[-1]), float(b[-1] - a[0]), counting)
        middle = n * n // 2
        for k in range(middle - 50, middle + 50):
            order(k)
        return values

    # Twice the values take one more halving until an interval holds as few pairs as values.
    assert looked_at(20_000) <= 2.3 * looked_at(10_000)
