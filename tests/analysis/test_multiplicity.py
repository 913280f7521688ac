import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.analysis import multiplicity
from nephoscope.analysis.values import Refused

chances = st.lists(st.floats(0, 1), max_size=30)


def test_holm_and_benjamini_hochberg():
    ps = [0.01, 0.04, 0.03]
    assert multiplicity.holm(ps) == pytest.approx([0.03, 0.06, 0.06])
    assert multiplicity.benjamini_hochberg(ps) == pytest.approx([0.03, 0.04, 0.04])


def test_nothing_and_nonsense():
    assert multiplicity.holm([]) == []
    assert multiplicity.benjamini_hochberg([]) == []
    with pytest.raises(Refused, match="outside"):
        multiplicity.holm([0.5, 1.5])


@given(chances)
def test_adjusted_is_never_smaller_and_holm_is_the_stricter(ps):
    holm, bh = multiplicity.holm(ps), multiplicity.benjamini_hochberg(ps)
    for p, strict, mild in zip(ps, holm, bh, strict=True):
        assert p - 1e-12 <= mild <= strict + 1e-12 <= 1 + 2e-12


@given(chances, st.randoms())
def test_order_does_not_matter(ps, random):
    adjusted = dict(zip(ps, multiplicity.holm(ps), strict=True))
    shuffled = list(ps)
    random.shuffle(shuffled)
    assert dict(zip(shuffled, multiplicity.holm(shuffled), strict=True)) == adjusted
