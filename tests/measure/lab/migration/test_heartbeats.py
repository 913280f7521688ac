"""Heartbeats of planted losses, gaps and rates."""

from __future__ import annotations

import pytest

from nephoscope.measure.lab.migration import heartbeats
from nephoscope.measure.lab.migration.heartbeats import HeartbeatAnswer, HeartbeatRecord

MS = 1_000_000
SENT = tuple(range(0, 1_000 * MS, 10 * MS))
LOST = range(30, 41)
RECORD = HeartbeatRecord(
    SENT,
    tuple(
        HeartbeatAnswer(number, at, at + MS, 3 * number, 7 * number)
        for number, at in enumerate(SENT)
        if number not in LOST
    ),
)


def test_the_longest_gap_is_that_around_a_time() -> None:
    assert heartbeats.longest_gap_ns(RECORD, 300 * MS, 400 * MS) == 120 * MS
    assert heartbeats.longest_gap_ns(RECORD, 500 * MS, 600 * MS) == 10 * MS
    with pytest.raises(ValueError, match="before and after"):
        heartbeats.longest_gap_ns(RECORD, 900 * MS, 2_000 * MS)


def test_lost_heartbeats_are_those_without_an_answer() -> None:
    assert heartbeats.lost_and_sent(RECORD, 0, 1_000 * MS) == (11, 100)
    assert heartbeats.lost_and_sent(RECORD, 350 * MS, 1_000 * MS) == (6, 65)


def test_rates_are_counted_between_answers() -> None:
    pages_per_s, work_per_s = heartbeats.rates_per_s(RECORD, 0, 1_000 * MS)
    assert (pages_per_s, work_per_s) == (pytest.approx(300.0), pytest.approx(700.0))
    with pytest.raises(ValueError, match="fewer than two"):
        heartbeats.rates_per_s(RECORD, 305 * MS, 400 * MS)
