"""Times of an agreement: instants from text, and the periods of its calendar or rolling window."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from nephoscope import limits, units
from nephoscope.errors import UsageError
from nephoscope.sla.terms import CALENDAR, Agreement, Claim

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


def periods_between(
    agreement: Agreement, first_ns: int, last_ns: int, step_ns: int
) -> list[Period]:
    """Returns the periods that hold any instant from first to last, both inclusive.

    A rolling window is one period that ends at the first multiple of `step_ns` after the last.
    """
    if agreement.period not in CALENDAR:
        length_ns = units.parse_duration_ns(agreement.period)
        end_ns = (last_ns // step_ns + 1) * step_ns
        return [Period(f"last {agreement.period}", end_ns - length_ns, end_ns)]
    zone = ZoneInfo(agreement.time_zone)
    start = _start(agreement.period, moment_of(first_ns, agreement.time_zone))
    periods: list[Period] = []
    while (start_ns := to_ns(_aware(start, zone))) <= last_ns:
        label, start = _label(agreement.period, start), _next(agreement.period, start)
        periods.append(Period(label, start_ns, to_ns(_aware(start, zone))))
        if len(periods) > limits.SLA_PERIODS:
            raise UsageError(
                f"There are more than {limits.SLA_PERIODS:,} periods between the first event "
                f"({text_of(first_ns)}) and the last ({text_of(last_ns)}).",
                "Correct the time of the wrong one.",
            )
    return periods


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
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None, fold=0)
    if kind == "week":
        return day - timedelta(days=day.weekday())
    if kind == "month":
        return day.replace(day=1)
    if kind == "quarter":
        return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
    return day.replace(month=1, day=1) if kind == "year" else day


def _next(kind: str, start: datetime) -> datetime:
    if kind in ("day", "week"):
        return start + timedelta(days=1 if kind == "day" else 7)
    return _months_later(start, {"month": 1, "quarter": 3, "year": 12}[kind])


def _label(kind: str, start: datetime) -> str:
    if kind == "week":
        return f"{start:%G-W%V}"
    if kind == "quarter":
        return f"{start.year}-Q{(start.month + 2) // 3}"
    return {"day": f"{start:%Y-%m-%d}", "month": f"{start:%Y-%m}"}.get(kind, f"{start:%Y}")
