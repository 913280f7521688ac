"""The closed form of pre-copy: the geometric series, its bound, and what does not converge."""

from __future__ import annotations

import pytest

from nephoscope.features.migration import precopy

MIB = float(1 << 20)


def test_without_writes_there_is_one_round_and_no_pause() -> None:
    predicted = precopy.predict(100 * MIB, 10 * MIB, 0.0, 16 * MIB, 0.3)
    assert (predicted.rounds, predicted.total_s, predicted.pause_s) == (1, 10.0, 0.0)


@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.9])
def test_rounds_sum_up_to_the_geometric_series(ratio: float) -> None:
    """Where the working set never limits, as in Liu et al., equation of the total time."""
    predicted = precopy.predict(100 * MIB, 10 * MIB, ratio * 10 * MIB, 1e12, 0.3)
    assert predicted.rounds is not None
    series_s = precopy.series_total_s(100 * MIB, 10 * MIB, ratio, predicted.rounds)
    assert predicted.total_s == pytest.approx(series_s, rel=1e-12)
    # The last rest fits 0.3 s, and the one before does not: 10 s x ratio^n <= 0.3 s.
    assert predicted.pause_s == pytest.approx(10.0 * ratio**predicted.rounds, rel=1e-12)
    assert predicted.pause_s <= 0.3 < predicted.pause_s / ratio


def test_a_working_set_that_is_rewritten_within_a_round_is_the_rest_of_each() -> None:
    """4 MiB at 100 MiB/s over 10 MiB/s: a pause of 0.4 s, if that is allowed."""
    predicted = precopy.predict(100 * MIB, 10 * MIB, 100 * MIB, 4 * MIB, 0.45)
    assert predicted.pause_s == pytest.approx(0.4)
    assert predicted.total_s == pytest.approx(10.4)
    refused = precopy.predict(100 * MIB, 10 * MIB, 100 * MIB, 4 * MIB, 0.35)
    assert not refused.converges
    assert (refused.rounds, refused.total_s, refused.pause_s) == (None, None, None)
    assert refused.ratio == pytest.approx(10.0)


def test_a_dirty_rate_at_the_bandwidth_does_not_converge() -> None:
    assert not precopy.predict(100 * MIB, 10 * MIB, 10 * MIB, 1e12, 0.3).converges
    assert precopy.predict(100 * MIB, 10 * MIB, 9.99 * MIB, 1e12, 0.3).converges
