import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.analysis.statistics.values import Refused
from nephoscope.machine import consistency_laws


def test_little_on_published_tables():
    # Caldwell 2011: 100 clients at 78.9 ms cannot make 2361.6 /s; 300 at 46.93 ms make 6392 /s.
    assert "Little's law is broken" in consistency_laws.little(100, 2361.6, 0.0789)
    assert consistency_laws.little(300, 6293.5, 0.04693) is None
    assert consistency_laws.little(100, 6293.5, 0.04693)


def test_utilisation():
    assert consistency_laws.utilisation(0.5, 50, 0.01) is None
    assert "more than there are" in consistency_laws.utilisation(1.0, 200, 0.01)
    assert "utilisation law" in consistency_laws.utilisation(0.9, 50, 0.01)
    assert consistency_laws.utilisation(0.5, 200, 0.01, servers=4) is None


def test_link_cap():
    assert consistency_laws.link_cap(117e6, 125e6) is None
    assert "more than the link" in consistency_laws.link_cap(256e3 / 0.0005, 125e6)


def test_weights():
    assert consistency_laws.weights([0.1] * 10) is None
    assert "sum to 0.9" in consistency_laws.weights([0.5, 0.4])
    assert consistency_laws.weights([1.5, -0.5])


def test_interval_of_a_t_test_is_centred():
    # Caldwell 2011 prints 6293.5 with [6106.6, 6470.3], centred on 6288.45.
    assert "centred on 6288.45" in consistency_laws.symmetric(6293.5, 6106.6, 6470.3, rounding=0.05)
    assert consistency_laws.symmetric(102.0, 97.4, 106.6, rounding=0.05) is None
    assert consistency_laws.symmetric(102.0, 97.43, 106.56, rounding=0.05) is None


def test_deviation_that_the_range_forbids():
    # Nadeem 2015: 0.008 % of about 97 within 95 … 98 is impossible for any n he can have used.
    assert "impossible" in consistency_laws.deviation(0.00008 * 97, 95, 98, 10)
    assert consistency_laws.deviation(0.0069 * 97, 95, 98, 10) is not None  # at least 0.69 %
    assert consistency_laws.deviation(0.0070 * 97, 95, 98, 10) is None
    assert consistency_laws.deviation(5, 95, 98, 10)


def test_sum_of_parts():
    assert consistency_laws.sum_of_parts([40, 42, 17, 1], 100) is None
    assert "sum to 99" in consistency_laws.sum_of_parts([40, 42, 17], 110)


def test_file_that_fits_into_memory():
    # Nadeem 2015: 512 MB of file on a guest of 512 MB and a host of 5 GB.
    assert "caches were measured" in consistency_laws.cached_file(512e6, 512e6, 5e9, direct=False)
    assert consistency_laws.cached_file(11e9, 512e6, 5e9, direct=False) is None
    assert consistency_laws.cached_file(512e6, 4e9, direct=True) is None
    assert consistency_laws.cached_file(512e6, 512e6, 5e9, direct=True)


def test_geometric_mean():
    assert consistency_laws.geometric_mean(
        [1.1, 1.0476190, 1.2, 1.025, 0.9666667, 1.0833333]
    ) == pytest.approx(math.prod([1.1, 1.0476190, 1.2, 1.025, 0.9666667, 1.0833333]) ** (1 / 6))
    assert consistency_laws.geometric_mean([0.5, 2]) == pytest.approx(1)
    with pytest.raises(Refused):
        consistency_laws.geometric_mean([1, 0])


def test_violated_collects_sentences():
    assert consistency_laws.violated(None, "a", None, "b") == ["a", "b"]


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30))
def test_no_real_sample_breaks_the_law_of_the_range(values):
    spread = float(np.std(values, ddof=1))
    slack = 1e-6  # values that differ by less than their own rounding
    if max(values) - min(values) > slack:
        assert consistency_laws.deviation(spread, min(values), max(values), len(values)) is None
