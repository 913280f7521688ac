"""Verdicts as a section: one line per service and period, calendar, budget, violation periods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from nephoscope.core import units
from nephoscope.features.sla.objectives import ErrorBudget, ObjectiveVerdict, Outage
from nephoscope.features.sla.result import PeriodVerdict, SlaVerdict
from nephoscope.report import heat_maps, wording
from nephoscope.report.blocks import (
    Block,
    Chart,
    Heading,
    Item,
    Section,
    Sentence,
    Table,
    items,
    thin,
)
from nephoscope.report.columns import number, spread, table, text

MAX_ROWS = 60
MAX_OUTAGES = 20
MAX_WEEKS = 8
_DEEPEST_S = 3600.0
"""Downtime of a day that has the deepest colour of the calendar."""

_TONES = {"met": "", "undecided": "notice", "violated": "warning"}


def section(verdict: SlaVerdict) -> Section:
    """Returns the section of a verdict."""
    blocks: list[Block] = [Sentence(_lead(verdict), lead=True)]
    blocks.append(Sentence(f"Terms: {wording.clean(verdict.title)}. Source: {verdict.source}."))
    blocks.append(_summary(verdict))
    blocks += _calendar(verdict)
    blocks += _budget(verdict)
    blocks += _response_times(verdict)
    blocks += _outages(verdict)
    blocks += items(_reasons(verdict))
    blocks += items(verdict.notes, folded="Notes")
    return Section("sla", "Service level agreement", tuple(blocks))


def _lead(verdict: SlaVerdict) -> str:
    words = [period.verdict for period in verdict.periods]
    counts = [f"{words.count(word)} {word}" for word in ("met", "violated", "undecided")]
    services = wording.plural(len(verdict.services), "service")
    lead = f"{services}, {wording.plural(len(words), 'period')}: {', '.join(counts)}."
    if verdict.periods and verdict.periods[0].period.startswith("last "):
        lead += f" The window is from {verdict.periods[0].start} to {verdict.periods[0].end}."
    return lead


def _summary(verdict: SlaVerdict) -> Table:
    rows = [
        (period, judged, index == 0)
        for period in verdict.periods
        for index, judged in enumerate(period.objectives)
    ]
    return table(
        thin(rows, MAX_ROWS),
        text("service", lambda row: wording.clean(row[0].service) or "-"),
        text("period", lambda row: row[0].period),
        text("objective", lambda row: row[1].objective),
        number("observed", lambda row: _observed(row[1])),
        number("bounds", lambda row: _bounds(row[1]), roomy=True),
        text("verdict", lambda row: row[1].verdict),
        number("budget used", lambda row: _budget_used(row[1])),
        number("credit", lambda row: _credit(row[0]) if row[2] else ""),
    )


def _observed(judged: ObjectiveVerdict) -> str:
    if judged.share is None:
        return "unknown"
    if judged.share.unit == "ns":
        return units.format_value(judged.share.value, "ns")
    return share_text(judged.share.value)


def share_text(share: float) -> str:
    """Returns a share near one with the digits that tell it from one."""
    return f"{100 * share:.5f}".rstrip("0").rstrip(".") + " %"


def _bounds(judged: ObjectiveVerdict) -> str:
    share = judged.share
    if share is None or share.low is None or share.high is None:
        return ""
    if share.unit == "ns":
        return units.format_interval(share.value, share.low, share.high, "ns")
    return f"{share_text(share.low)} to {share_text(share.high)}"


def _budget_used(judged: ObjectiveVerdict) -> str:
    if judged.budget is None or judged.budget.used_ratio is None:
        return ""
    return f"{100 * judged.budget.used_ratio:.1f} %"


def _credit(period: PeriodVerdict) -> str:
    credit = period.credit
    if credit.owed_share is None:
        return "not stated"
    owed = f"{100 * credit.owed_share:g} %"
    if credit.owed is not None:
        owed = f"{credit.owed} {credit.currency}"
    if credit.possible_share is not None and credit.possible_share > credit.owed_share:
        most = credit.possible or f"{100 * credit.possible_share:g} %"
        owed += f" (up to {most})"
    if credit.business_loss is not None:
        owed += f"; loss {credit.business_loss}"
    return owed


def _calendar(verdict: SlaVerdict) -> list[Block]:
    """Downtime by day of the service and period that has most of it; nothing without any."""
    down = [period for period in verdict.periods if _downtime_s(period) > 0]
    if not down:
        return []
    worst = max(down, key=_downtime_s)
    by_day = _downtime_by_day(worst.objectives[0].outages)
    days = table(
        sorted(by_day.items()),
        text("day", lambda row: row[0]),
        number("downtime", lambda row: units.format_duration(row[1])),
    )
    scope = f" (the longest downtime of {len(down)})" if len(down) > 1 else ""
    title = f"Downtime by day: {wording.clean(worst.service) or '-'}, {worst.period}{scope}"
    note = "The deepest colour is an hour or more; days without a time have no violation period."
    return [Chart("sla-calendar", title, _weeks(by_day), days, note, brief=days)]


def _downtime_s(period: PeriodVerdict) -> float:
    return sum(outage.duration_s for judged in period.objectives[:1] for outage in judged.outages)


def _downtime_by_day(outages: Sequence[Outage]) -> dict[date, float]:
    """Seconds of downtime of each day that has any; an outage is cut at midnight."""
    days: dict[date, float] = {}
    for outage in outages:
        start, end = (datetime.fromisoformat(text) for text in (outage.start, outage.end))
        while start < end:
            midnight = (start + timedelta(days=1)).replace(hour=0, minute=0, second=0)
            until = min(end, midnight.replace(microsecond=0))
            days[start.date()] = days.get(start.date(), 0.0) + (until - start).total_seconds()
            start = until
    return days


def _weeks(by_day: Mapping[date, float]) -> dict[str, Any]:
    """A calendar of the weeks that have downtime, the worst of them if there are many."""
    weeks: dict[date, float] = {}
    for day, seconds in by_day.items():
        monday = day - timedelta(days=day.weekday())
        weeks[monday] = weeks.get(monday, 0.0) + seconds
    listing = sorted(sorted(weeks, key=lambda monday: -weeks[monday])[:MAX_WEEKS])
    squares = {}
    for row, monday in enumerate(listing):
        for column in range(7):
            day = monday + timedelta(days=column)
            seconds = by_day.get(day, 0.0)
            minutes = f"{seconds / 60:.{0 if seconds >= 600 else 1}f} min"
            lines = (f"{day.day}", *([minutes] if seconds else []))
            depth = heat_maps.DEEPEST ** min(1.0, seconds / _DEEPEST_S)
            hover = f"{day}: {units.format_duration(seconds) if seconds else 'no downtime'}"
            squares[row, column] = heat_maps.Square(lines, hover, depth if seconds else None)
    names = [f"from {monday.day} {monday:%b}" for monday in listing]
    return heat_maps.grid(names, ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"), squares)


def _budget(verdict: SlaVerdict) -> list[Block]:
    rows = [
        (period, judged.budget)
        for period in verdict.periods
        for judged in period.objectives
        if judged.budget is not None and judged.budget.burn_rate is not None
    ]
    if not rows:
        return []

    def allowed(budget: ErrorBudget) -> str:
        if budget.allowed_s is None:
            return f"{budget.allowed:.0f} events"
        return units.format_duration(budget.allowed_s)

    def rates(budget: ErrorBudget) -> list[str]:
        known = budget.burn_rates.values() or (None,) * 5
        return ["" if rate is None else f"{rate:.3g}" for rate in known]

    listing = table(
        thin(rows, MAX_ROWS),
        text("service", lambda row: wording.clean(row[0].service) or "-"),
        text("period", lambda row: row[0].period),
        number("allowed", lambda row: allowed(row[1])),
        number("burn rate", lambda row: f"{row[1].burn_rate:.3g}"),
        *spread(("5 min", "30 min", "1 h", "6 h", "3 d"), lambda row: rates(row[1])),
        caption="Error budget. A burn rate of 1 uses it exactly in one period; the windows end "
        "now, or with a period that is over.",
    )
    return [listing]


def _response_times(verdict: SlaVerdict) -> list[Block]:
    """Percentiles of the response time beside the objective."""
    rows = [
        (period, judged)
        for period in verdict.periods
        for judged in period.objectives
        if judged.response_ms
    ]
    if not rows:
        return []

    def times(judged: ObjectiveVerdict) -> list[str]:
        return [
            "failed" if value is None else units.format_value(value * 1e6, "ns")
            for value in judged.response_ms.values()
        ]

    listing = table(
        thin(rows, MAX_ROWS),
        text("service", lambda row: wording.clean(row[0].service) or "-"),
        text("period", lambda row: row[0].period),
        text("objective", lambda row: row[1].objective),
        *spread(("p50", "p90", "p95", "p99", "maximum"), lambda row: times(row[1])),
        caption="Percentiles by nearest rank; an event that failed is longer than any other.",
    )
    is_scaling = all(judged.measure == "scaling_time" for _, judged in rows)
    return [Heading("Scaling time" if is_scaling else "Response time"), listing]


def _outages(verdict: SlaVerdict) -> list[Block]:
    rows = [
        (period.service, outage)
        for period in verdict.periods
        for judged in period.objectives
        for outage in judged.outages
    ]
    if not rows:
        return []
    rows.sort(key=lambda row: row[1].start)
    dropped = len(rows) - MAX_OUTAGES
    listing = table(
        rows[-MAX_OUTAGES:],
        text("service", lambda row: wording.clean(row[0]) or "-"),
        text("from", lambda row: row[1].start),
        text("to", lambda row: row[1].end),
        number("duration", lambda row: units.format_duration(row[1].duration_s)),
        caption=f"The last {MAX_OUTAGES} of {len(rows)}; --json has all." if dropped > 0 else "",
    )
    return [Heading("Violation periods"), listing]


def _reasons(verdict: SlaVerdict) -> list[Item]:
    items = []
    for period in verdict.periods:
        name = f"{wording.clean(period.service)} {period.period}".strip()
        for judged in period.objectives:
            if judged.reason and judged.verdict != "met":
                items.append(Item(f"{name}: {judged.reason}", _TONES[judged.verdict]))
        credit = period.credit
        if credit.claim_by is not None and credit.owed_share:
            items.append(Item(f"{name}: claim by {credit.claim_by}. {credit.note}".strip()))
        if period.unbilled:
            hours = wording.plural(period.unbilled, "clock hour")
            items.append(Item(f"{name}: {hours} with too much downtime are not billed."))
    return items[:MAX_ROWS]
