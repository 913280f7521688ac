"""The calendar of a verdict: downtime by the day on which it fell."""

from __future__ import annotations

from datetime import date

from nephoscope.features.sla import section
from nephoscope.features.sla.objectives import Outage


def test_an_outage_over_midnight_counts_on_both_days() -> None:
    outages = [
        Outage("2026-10-04T23:30:00Z", "2026-10-06T02:00:00Z", 95_400.0),
        Outage("2026-10-06T10:00:00Z", "2026-10-06T10:00:30.500000Z", 30.5),
    ]
    assert section._downtime_by_day(outages) == {
        date(2026, 10, 4): 1800.0,
        date(2026, 10, 5): 86_400.0,
        date(2026, 10, 6): 7230.5,
    }


def test_the_calendar_has_the_worst_weeks_in_order() -> None:
    by_day = {date.fromordinal(738_000 + 7 * week): 60.0 + week for week in range(20)}
    figure = section._weeks(by_day)
    written = [note["text"] for note in figure["layout"]["annotations"]]
    assert len(written) == 7 * section.MAX_WEEKS
    assert [text for text in written if "min" in text] == [
        f"<b>{date.fromordinal(738_000 + 7 * week).day}</b><br>{(60 + week) / 60:.1f} min"
        for week in range(12, 20)
    ]
