"""Figures of migrations: means, predictions, and rates at which none completes."""

from __future__ import annotations

import pytest
from tests.features.migration.made import MIB, PAUSE_NS, TOTAL_NS, report

from nephoscope.features.migration.measure import migration_of
from nephoscope.measure.lab.migration.guests import MigrationEvents
from nephoscope.measure.lab.migration.heartbeats import HeartbeatAnswer, HeartbeatRecord

MS = 1_000_000
INTERVAL_NS = 2 * MS


def test_means_are_compared_with_the_closed_form() -> None:
    slow, fast = report().figures
    assert slow.total_ns is not None
    assert slow.pause_ns is not None
    assert slow.predicted_pause_ns is not None
    assert (slow.completed, slow.cancelled, slow.total_ns.n) == (3, 0, 3)
    assert slow.total_ns.value == pytest.approx(TOTAL_NS)
    assert slow.pause_ns.value == pytest.approx(PAUSE_NS)
    # 100 MiB at 10 MiB/s, then the 16 MiB that are rewritten, then a fifth each: the last fits.
    assert slow.predicted_total_ns == pytest.approx((10 + 1.6 + 0.32 + 0.064) * 1e9)
    assert slow.predicted_rounds == 3
    assert slow.dirty_ratio == pytest.approx(0.2)
    assert slow.predicted_pause_ns.value == pytest.approx(200e6)  # 2 MiB at 10 MiB/s
    assert (fast.completed, fast.cancelled, fast.total_ns, fast.predicted_total_ns) == (
        0,
        2,
        None,
        None,
    )


def test_a_migration_is_judged_by_its_heartbeats() -> None:
    """Work halves for 10 s, then 300 ms pass without an answer; 500 pages per second."""
    began, paused, resumed = 3_000 * MS, 13_000 * MS, 13_290 * MS
    sent = range(0, 16_000 * MS, INTERVAL_NS)
    answers, work, pages = [], 0.0, 0.0
    for number, at in enumerate(sent):
        if paused <= at < resumed + 5 * MS:
            continue
        work += 1.0 if began <= at < paused else 2.0
        pages += 500 * INTERVAL_NS / 1e9
        answers.append(HeartbeatAnswer(number, at, at + MS // 2, round(pages), round(work)))
    ram = {"downtime-bytes": 3 * MIB, "dirty-sync-count": 4}
    events = MigrationEvents(began, 13_300 * MS, paused, resumed, 280, 90 * MIB, ram)
    one = migration_of(events, HeartbeatRecord(tuple(sent), tuple(answers)), 2e6, 1)
    assert one.slowdown == pytest.approx(2.0, rel=0.01)
    assert one.dirty_bytes_per_s == pytest.approx(500 * 4096, rel=0.01)
    assert one.gap_ns == pytest.approx(297 * MS, abs=INTERVAL_NS)
    assert one.lost == pytest.approx(295 / 2, abs=1)
    assert (one.pause_ns, one.total_ns, one.downtime_ns) == (290 * MS, 10_300 * MS, 280 * MS)
    assert (one.paused_bytes, one.rounds, one.first_round_bytes) == (3 * MIB, 4, 90 * MIB)


def test_a_cancelled_migration_has_neither_pause_nor_loss() -> None:
    sent = range(0, 8_000 * MS, INTERVAL_NS)
    answers = tuple(HeartbeatAnswer(at, when, when, at, at) for at, when in enumerate(sent))
    events = MigrationEvents(3_000 * MS, 7_000 * MS, None, None, None, 90 * MIB, {})
    one = migration_of(events, HeartbeatRecord(tuple(sent), answers), 2e6, 1)
    assert (one.pause_ns, one.gap_ns, one.downtime_ns, one.lost) == (None, None, None, None)
    assert one.slowdown == pytest.approx(1.0)


def test_a_guest_that_never_answers_again_is_not_judged() -> None:
    sent = range(0, 8_000 * MS, INTERVAL_NS)
    answers = tuple(
        HeartbeatAnswer(at, when, when, at, at) for at, when in enumerate(sent) if when < 6_000 * MS
    )
    events = MigrationEvents(3_000 * MS, 7_000 * MS, 6_000 * MS, 6_500 * MS, 480, 1, {})
    with pytest.raises(ValueError, match="before and after"):
        migration_of(events, HeartbeatRecord(tuple(sent), answers), 2e6, 1)
