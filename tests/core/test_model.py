"""The records."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nephoscope.core.model import Estimate, TrialKey, factors_key
from nephoscope.core.naming import level_name

LEVELS = st.one_of(st.booleans(), st.integers(-(10**6), 10**6), st.text(max_size=5))


@given(st.dictionaries(st.text(min_size=1, max_size=5), LEVELS, max_size=5))
def test_equal_factors_have_equal_keys_in_any_order(factors: dict[str, object]) -> None:
    turned = dict(reversed(list(factors.items())))
    assert factors_key(factors) == factors_key(turned)


def test_trial_names_are_unique_and_sort_by_round() -> None:
    keys = [TrialKey(r, s, t) for r in (-1, 0, 1, 2, 10) for s in (0, 1, 12) for t in ("a", "b")]
    names = [key.name for key in keys]
    assert len(set(names)) == len(keys)
    measured = [key.name for key in keys if key.round > 0]
    assert measured == sorted(measured)


def test_the_half_width_is_relative_and_may_be_missing() -> None:
    whole = Estimate(100.0, 98.0, 103.0, 0.95, 15, "ns", "")
    assert whole.half_width_ratio == 0.025
    assert Estimate(100.0, None, 103.0, 0.95, 3, "ns", "").half_width_ratio is None
    assert Estimate(0.0, 0.0, 0.0, 0.95, 15, "ns", "").half_width_ratio is None


def test_a_level_that_is_a_document_goes_by_its_name() -> None:
    assert level_name(4096) == "4096"
    assert level_name("50ms") == "50ms"
    assert level_name('{"version": 1, "name": "two-sites", "sites": {}}') == "two-sites"
    assert level_name('{"version": 1}') == "a scenario of its own"
    assert len(level_name("{" + "x" * 999)) < 30
