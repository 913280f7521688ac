import math

import pytest
from scipy.optimize import brentq

from nephoscope.stats import root as roots


@pytest.fixture(params=[True, False], ids=["extension", "package"])
def loaded(request, monkeypatch):
    if request.param:
        assert roots._compiled() is not None
    else:
        monkeypatch.setattr(roots, "_compiled", lambda: None)


@pytest.mark.usefixtures("loaded")
def test_it_is_the_root_of_scipy_to_the_last_bit():
    for function, low, high in (
        (math.cos, 1.0, 2.0),
        (lambda x: math.exp(x) - 7, 0.0, 50.0),
        (lambda x: x**3 - 2 * x - 5, 2.0, 3.0),
    ):
        assert roots.root(function, low, high) == brentq(function, low, high)
    with pytest.raises(ValueError, match="sign"):
        roots.root(math.cosh, 1.0, 2.0)
