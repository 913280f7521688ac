"""Times of an agreement: instants from text, and the periods of its calendar or rolling window."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from zoneinfo import ZoneInfo

from nephoscope.core import limits, units
from nephoscope.core.errors import UsageError
from nephoscope.core.records import dataclass
from nephoscope.features.sla.terms import Agreement, Claim, calendar_unit

NS = 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Period:
    """A window over which an agreement is judged; start inclusive, end exclusive, ns since 1970."""

    label: str
    start_ns: int
    end_ns: int


def instant_ns(text: str, zone: str) -> int:
    """Returns the instant of an ISO 8601 text; without an offset it is local time of `zone`.

    Raises UsageError for a local time that the zone's clock shows twice or never.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(
            f"'{text[:60]}' is no time.", "Write ISO 8601, for example 2026-03-29T02:00:00Z."
        ) from None
    if moment.tzinfo is None:
        local = moment.replace(tzinfo=ZoneInfo(zone))
        if local.utcoffset() != local.replace(fold=1).utcoffset():
            raise UsageError(
                f"'{text[:60]}' exists twice or never in {zone}, where clocks change.",
                "State the offset from UTC, for example +01:00.",
            )
        moment = local
    return to_ns(moment)


def to_ns(moment: datetime) -> int:
    """Returns nanoseconds since 1970 of a time with a zone."""
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def moment_of(at_ns: int, zone: str = "UTC") -> datetime:
    """Returns the local time of an instant; UsageError outside the years 1 to 9999."""
    try:
        return (_EPOCH + timedelta(microseconds=at_ns // 1000)).astimezone(ZoneInfo(zone))
    except OverflowError:
        raise UsageError(
            f"{at_ns / NS:g} s since 1970 is no time of a calendar.", "Times are in seconds."
        ) from None


def text_of(at_ns: int, zone: str = "UTC") -> str:
    """Returns an instant as ISO 8601 with its offset."""
    return moment_of(at_ns, zone).isoformat().replace("+00:00", "Z")


def is_rolling(agreement: Agreement) -> bool:
    """Returns whether the agreement is judged over one window that ends now."""
    return agreement.first_period is None and calendar_unit(agreement.period) is None


def rolling_window(agreement: Agreement, now_ns: int, step_ns: int) -> Period:
    """Returns the window that ends with the last multiple of `step_ns` up to now."""
    end_ns = now_ns // step_ns * step_ns
    start_ns = end_ns - round(units.parse_duration_ns(agreement.period))
    return Period(f"last {agreement.period}", start_ns, end_ns)


def period_at(agreement: Agreement, at_ns: int, step_ns: int) -> Period:
    """Returns the period that holds an instant; a rolling window ends with it, in whole steps."""
    if is_rolling(agreement):
        return rolling_window(agreement, at_ns, step_ns)
    return next(_consecutive(agreement, at_ns))


def periods_between(agreement: Agreement, first_ns: int, last_ns: int) -> list[Period]:
    """Returns the consecutive periods that hold any instant from first to last, both inclusive.

    There is none before the agreement's first period.
    """
    periods: list[Period] = []
    for period in _consecutive(agreement, first_ns):
        if period.start_ns > last_ns:
            break
        periods.append(period)
        if len(periods) > limits.SLA_PERIODS:
            raise UsageError(
                f"There are more than {limits.SLA_PERIODS:,} periods between the first event "
                f"({text_of(first_ns)}) and the last ({text_of(last_ns)}).",
                "Correct the time of the wrong one.",
            )
    return periods


def _consecutive(agreement: Agreement, from_ns: int) -> Iterator[Period]:
    """Yields periods without end, beginning with the one that holds an instant or the first."""
    unit = calendar_unit(agreement.period)
    if unit is None:
        length_ns = round(units.parse_duration_ns(agreement.period))
        start_ns = instant_ns(agreement.first_period or "", agreement.time_zone)
        for number in count(max(0, (from_ns - start_ns) // length_ns)):
            at_ns = start_ns + number * length_ns
            label = _start_label(moment_of(at_ns, agreement.time_zone))
            yield Period(label, at_ns, at_ns + length_ns)
    else:
        zone = ZoneInfo(agreement.time_zone)
        local = moment_of(from_ns, agreement.time_zone).replace(tzinfo=None, fold=0)
        start, number = _start(unit[1], local), 0
        if agreement.first_period is not None:
            start = datetime.fromisoformat(agreement.first_period.strip())
            # At least as many as have passed: no unit is shorter than this many days.
            passed = (local - start).days // (unit[0] * _MAX_DAYS[unit[1]]) - 1
            number = max(0, passed)
            while to_ns(_aware(_later(unit, start, number + 1), zone)) <= from_ns:
                number += 1
        for following in count(number):
            begins, ends = (_later(unit, start, number) for number in (following, following + 1))
            label = _label(unit[1], begins)
            if unit[0] > 1 or begins != _start(unit[1], begins):
                label = _start_label(begins)
            yield Period(label, *(to_ns(_aware(day, zone)) for day in (begins, ends)))


_MAX_DAYS = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}


def _later(unit: tuple[int, str], start: datetime, number: int) -> datetime:
    """Returns the local time so many periods of a unit of the calendar after a start."""
    units_later = unit[0] * number
    if unit[1] in ("day", "week"):
        return start + timedelta(days=units_later * _MAX_DAYS[unit[1]])
    return _months_later(start, units_later * {"month": 1, "quarter": 3, "year": 12}[unit[1]])


def _start_label(start: datetime) -> str:
    """Returns the local start of a period as its name."""
    text = f"{start:%Y-%m-%dT%H:%M}"
    return text.removesuffix("T00:00")


def deadline_ns(claim: Claim, period: Period, incident_ns: int, zone: str) -> int:
    """Returns the end of the last day on which a claim may be made."""
    base = moment_of(period.end_ns if claim.after == "period" else incident_ns, zone)
    if claim.days is not None:
        return to_ns(base + timedelta(days=claim.days))
    return to_ns(_months_later(base, claim.months or 0))


def _months_later(moment: datetime, months: int) -> datetime:
    """Returns the same day of a later month, or its last one where it has no such day."""
    years, month = divmod(moment.month - 1 + months, 12)
    year, month = moment.year + years, month + 1
    return moment.replace(year=year, month=month, day=min(moment.day, monthrange(year, month)[1]))


def _aware(naive: datetime, zone: ZoneInfo) -> datetime:
    return naive.replace(tzinfo=zone).astimezone(UTC)


def _start(kind: str, moment: datetime) -> datetime:
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if kind == "week":
        return day - timedelta(days=day.weekday())
    if kind == "month":
        return day.replace(day=1)
    if kind == "quarter":
        return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
    return day.replace(month=1, day=1) if kind == "year" else day


def _label(kind: str, start: datetime) -> str:
    if kind == "week":
        return f"{start:%G-W%V}"
    if kind == "quarter":
        return f"{start.year}-Q{(start.month + 2) // 3}"
    return {"day": f"{start:%Y-%m-%d}", "month": f"{start:%Y-%m}"}.get(kind, f"{start:%Y}")
