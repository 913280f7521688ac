"""Spares against the binomial law, and where there are none that would do."""

from __future__ import annotations

import pytest
from scipy.stats import binom

from nephoscope.stats.redundancy import spares_needed
from nephoscope.stats.statistics.values import Refused


@pytest.mark.parametrize(
    ("working", "availability", "wanted"),
    [(1, 0.99, 0.999), (3, 0.995, 0.9999), (40, 0.97, 0.99), (2000, 0.9, 0.999), (5, 1.0, 0.9)],
)
def test_so_many_spares_do_and_fewer_do_not(
    working: int, availability: float, wanted: float
) -> None:
    spares = spares_needed(working, availability, wanted)
    enough = [
        binom.sf(working - 1, working + count, availability) for count in (spares, spares - 1)
    ]
    assert enough[0] >= wanted
    assert spares == 0 or enough[1] < wanted


def test_units_that_hardly_work_are_refused() -> None:
    with pytest.raises(Refused, match="too few"):
        spares_needed(3, 0.01, 0.99)
    with pytest.raises(Refused):
        spares_needed(0, 0.9, 0.99)
