import numpy as np
import pytest
from scipy.signal import lfilter

from nephoscope.stats import linear_filter

CASES = (
    ([0.5, 0.25, 0.125], [1.0]),
    ([1.0, -0.7], [1.0, 0.3]),
    ([1.0, -0.7], [1.0, -1.3, 0.3]),
    ([0.0625], [1.0, -0.9375]),
    (np.linspace(1, 0.1, 40), [1.0, -1.0]),
)


@pytest.fixture(params=[True, False], ids=["extension", "package"])
def loaded(request, monkeypatch):
    if request.param:
        assert linear_filter._compiled() is not None
    else:
        monkeypatch.setattr(linear_filter, "_compiled", lambda: None)


@pytest.mark.usefixtures("loaded")
def test_it_is_the_filter_of_scipy_to_the_last_bit():
    rng = np.random.default_rng(3)
    for numerator, denominator in CASES:
        for columns in (rng.normal(size=30), rng.normal(size=(30, 4))[::-1], np.ones((1, 2))):
            expected = lfilter(numerator, denominator, columns, axis=0)
            got = linear_filter.linear_filter(numerator, denominator, columns)
            assert got.tolist() == expected.tolist()
    columns, state = rng.normal(size=(20, 3)), rng.normal(size=(1, 3))
    expected, _ = lfilter([1.0, -0.5], [1.0, 0.2], columns, axis=0, zi=state)
    got = linear_filter.linear_filter([1.0, -0.5], [1.0, 0.2], columns, state)
    assert got.tolist() == expected.tolist()
