import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.stats.statistics import multiplicity
from nephoscope.stats.statistics.values import Refused

chances = st.lists(st.floats(0, 1), max_size=30)


def test_holm():
    ps = [0.01, 0.04, 0.03]
    assert multiplicity.holm(ps) == pytest.approx([0.03, 0.06, 0.06])


def test_nothing_and_nonsense():
    assert multiplicity.holm([]) == []
    with pytest.raises(Refused, match="outside"):
        multiplicity.holm([0.5, 1.5])


@given(chances, st.randoms())
def test_order_does_not_matter(ps, random):
    adjusted = dict(zip(ps, multiplicity.holm(ps), strict=True))
    shuffled = list(ps)
    random.shuffle(shuffled)
    assert dict(zip(shuffled, multiplicity.holm(shuffled), strict=True)) == adjusted
