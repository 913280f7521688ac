import pytest

from nephoscope.stats.scipy_extensions import compiled


@pytest.mark.parametrize(
    "place",
    [
        ("optimize", "_zeros", "_no_function"),
        ("optimize", "_no_module", "_brentq"),
        ("no_package", "_zeros", "_brentq"),
    ],
)
def test_what_is_missing_is_none(place):
    assert compiled(*place) is None
    assert compiled("optimize", "_zeros", "_brentq") is not None
