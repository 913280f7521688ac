"""An estimate in a sentence."""

from __future__ import annotations

import pytest

from nephoscope.core.estimate_text import estimate_text
from nephoscope.core.model import Estimate


@pytest.mark.parametrize(
    ("n", "low", "high", "text"),
    [
        (1, None, None, "50.0 % (1 trial)"),
        (2, None, None, "50.0 % (no interval, n = 2)"),
        (12, 0.4, 0.6, "50.0 % [40.0, 60.0] (n = 12)"),
    ],
)
def test_a_sentence_states_what_is_known(
    n: int, low: float | None, high: float | None, text: str
) -> None:
    assert estimate_text(Estimate(0.5, low, high, 0.95, n, "ratio", "median")) == text
