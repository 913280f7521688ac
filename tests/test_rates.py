"""A counted rate refutes its promise only when chance hardly gives so many failures."""

from __future__ import annotations

import pytest
from tests.rates import FALSE_ALARM, failures_allowed, holds_rate


@pytest.mark.parametrize(("n", "promised", "allowed"), [(1, 0.95, 1), (60, 0.95, 7), (20, 0.9, 6)])
def test_the_bound_is_that_of_the_binomial(n: int, promised: float, allowed: int) -> None:
    assert failures_allowed(n, promised) == allowed


def test_a_rate_as_promised_fails_hardly_ever() -> None:
    from scipy.stats import binom

    for n in (5, 44, 200):
        chance = binom.sf(failures_allowed(n, 0.9), n, 0.1)
        assert chance <= FALSE_ALARM
        assert binom.sf(failures_allowed(n, 0.9) - 1, n, 0.1) > FALSE_ALARM


def test_it_is_printed_and_asserted(capsys: pytest.CaptureFixture[str]) -> None:
    holds_rate("named", [True] * 57 + [False] * 3, 0.95)
    assert "named: 57 of 60 (95.0%" in capsys.readouterr().out
    with pytest.raises(AssertionError, match="promised 95%: at most 7 may fail"):
        holds_rate("named", [True] * 52 + [False] * 8, 0.95)
