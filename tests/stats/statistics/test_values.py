import math

import numpy as np
import pytest

from nephoscope.core.errors import NephoscopeError
from nephoscope.stats.statistics import values


def test_a_refusal_is_told_to_the_user_like_every_error():
    with pytest.raises(NephoscopeError, match="missing is not zero"):
        values.clean([1.0, math.nan])


def test_clean_keeps_order_and_timeouts():
    assert values.clean([3, 1, math.inf]).tolist() == [3, 1, math.inf]
    with pytest.raises(values.Refused, match="use the median"):
        values.finite([3, 1, math.inf])
    with pytest.raises(values.Refused, match="needs 4"):
        values.clean([1, 2, 3], least=4)


def test_all_equal_needs_two():
    assert values.all_equal(np.array([2.0, 2.0]))
    assert not values.all_equal(np.array([2.0]))
    assert not values.all_equal(np.array([2.0, 2.1]))


@pytest.mark.parametrize(
    ("ratio", "text"), [(0.95, "95 %"), (0.02363, "2.36 %"), (0.995, "99.5 %")]
)
def test_percent(ratio, text):
    assert values.percent(ratio) == text


def test_runs_of_flags():
    starts, ends = values.runs_of(np.array([True, True, False, True]))
    assert (starts.tolist(), ends.tolist()) == ([0, 3], [2, 4])
    assert values.runs_of(np.zeros(3, dtype=bool))[0].size == 0


def test_middles_are_those_of_numpy_to_the_last_bit() -> None:
    rng = np.random.default_rng(5)
    for n in range(1, 12):
        rows = rng.lognormal(size=(200, n)) * 10.0 ** rng.integers(-200, 200, size=(200, n))
        rows[::7, rng.integers(n)] = np.inf
        rows[::11, rng.integers(n)] = np.nan
        assert np.array_equal(values.middles(rows), np.median(rows, axis=-1), equal_nan=True)
        assert np.array_equal(values.middles(rows[1]), np.median(rows[1]), equal_nan=True)
