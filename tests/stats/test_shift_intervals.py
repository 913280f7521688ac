"""Intervals of shifts: classical where values are independent, wider where they depend."""

from __future__ import annotations

import numpy as np
import pytest

from nephoscope.stats.shift_intervals import allow_for_dependence, interval_of
from nephoscope.stats.statistics import dependence, ranks

from .series import ar1


def test_without_dependence_the_interval_is_the_classical_one() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.normal(0, 1, (2, 12))
    texts, widening = allow_for_dependence(("A", "B"), (x, y), None)
    assert (texts, widening(0.95)) == ([], 1.0)
    assert interval_of(widening, paired=True)(x, y)(0.95) == ranks.one_sample_shift(y - x, 0.95)
    classical = ranks.SafeShift(x, y)(0.95)
    assert interval_of(widening, paired=False)(x, y)(0.95) == classical


def test_dependent_values_widen_the_interval_and_are_named() -> None:
    drifting = ar1(np.random.default_rng(9), 1, 40, 0.8)[0]
    texts, widening = allow_for_dependence(("The ratios",), (drifting,), dependence.ASSUMED)
    assert [text.partition(":")[0] for text in texts] == ["The ratios"]
    assert widening(0.95) > 1.5
    at = interval_of(widening, paired=True)(np.zeros(40), drifting)(0.95)
    plain = ranks.one_sample_shift(drifting, 0.95)
    assert None not in (at.low, at.high, plain.low, plain.high)
    assert at.high - at.low == pytest.approx(  # type: ignore[operator]
        widening(0.95) * (plain.high - plain.low)  # type: ignore[operator]
    )


def test_equal_values_depend_on_nothing_and_one_value_has_no_order() -> None:
    assert allow_for_dependence(("A",), (np.full(9, 3.0),), dependence.ASSUMED)[1](0.95) == 1
    assert allow_for_dependence(("A",), (np.ones(1),), dependence.ASSUMED)[1](0.95) == 1


def test_an_interval_far_beyond_its_values_is_marked() -> None:
    x, y = np.zeros(6), np.array([0.0, 1, 2, 3, 4, 5])
    assert interval_of(lambda _: 8.0, paired=True)(x, y)(0.95).too_wide
    assert not interval_of(lambda _: 1.0, paired=True)(x, y)(0.95).too_wide
