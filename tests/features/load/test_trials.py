"""Into how many trials `load` divides its time."""

from __future__ import annotations

import pytest

from nephoscope.core.errors import UsageError
from nephoscope.features.load.command import _trials


@pytest.mark.parametrize(
    ("duration_s", "trials"),
    [(1.0, 1), (2.9, 2), (3.0, 6), (5.0, 6), (8.0, 8), (30.0, 10), (86_400.0, 10)],
)
def test_a_short_time_still_gives_intervals(duration_s: float, trials: int) -> None:
    assert _trials(None, duration_s) == trials


def test_more_trials_than_the_time_has_room_for_are_refused() -> None:
    assert _trials(6, 3.0) == 6
    with pytest.raises(UsageError) as caught:
        _trials(7, 3.0)
    assert "at least 0.5 s" in str(caught.value)
