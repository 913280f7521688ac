"""The terms of an agreement: objectives, periods, exclusions, credits and deadlines, as data."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, Field, field_validator, model_validator

from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.core.format_versions import CONTRACT
from nephoscope.core.reading.fields import NAME, Record, Seconds

Measure = Literal[
    "availability",
    "response_time",
    "throughput",
    "durability",
    "jitter",
    "loss",
    "scaling_time",
]

TIMED = ("response_time", "scaling_time")
"""Measures of which the limit is that of a time which each event states."""

_MOST_DIGITS = 30
"""Of a share after its decimal point."""


def exact_share(value: Any) -> Any:
    """Returns the share that a text or number states, exactly: '99.95%' is 0.9995."""
    text = str(value).strip()
    try:
        share = Decimal(text.removesuffix("%").strip())
        share = share / 100 if text.endswith("%") else share
    except InvalidOperation:
        raise ValueError(f"'{text:.40}' is no share; write 99.95% or 0.9995") from None
    exponent = share.as_tuple().exponent  # a letter where it is not finite
    is_exact = isinstance(exponent, int) and exponent >= -_MOST_DIGITS
    if isinstance(value, bool) or not is_exact or not 0 <= share <= 1:
        raise ValueError(f"'{text:.40}' is no share between 0 and 100 %; write 99.95% or 0.9995")
    return share


Share = Annotated[Decimal, BeforeValidator(exact_share)]


def _with_unit(value: Any) -> Any:
    """Refuses a time without a unit: 500 would be 500 s to one reader and 500 ms to another."""
    if isinstance(value, int | float) or re.fullmatch(r"[\s0-9.]*", str(value)):
        raise ValueError(f"'{value!s:.20}' has no unit; write, for example, {value!s:.20}ms or 60s")
    return value


Time = Annotated[Seconds, BeforeValidator(_with_unit)]
"""Seconds, of a text with a unit."""


class CreditTier(Record):
    """A band of the service level and its credit as a share of the bill.

    The band is half-open: less than `below`, at least `at_least` or the next tier's `below`.
    """

    below: Share
    at_least: Share | None = None
    credit: Share


class DowntimeCredit(Record):
    """A credit, as a share of the bill, for each full interval of downtime in the period."""

    credit: Share
    every: Time


class Objective(Record):
    """One objective.

    target: minimum share of good slots or events. under, within: response time below which, or up
    to which, an event is good; of availability, slower events count as failed; of scaling_time, the
    time from a step of the demand to the capacity that serves it. mean, maximum: of the response
    time. at_least: completed requests per second in a slot. at_most:
    maximum share of lost events. years: over which the yearly share `target` has to hold. slot:
    length of the intervals that are judged. A slot is bad where the share of failed events is
    `failed_at_least` or more, or where it exceeds `failed_above`. min_outage: shorter outages do
    not count. basis: `census` where the events are all requests, so that their share is a fact and
    no estimate.
    """

    measure: Measure
    target: Share | None = None
    under: Time | None = None
    within: Time | None = None
    mean: Time | None = None
    maximum: Time | None = None
    at_least: Annotated[float, Field(gt=0, le=1e12)] | None = None
    at_most: Share | None = None
    years: Annotated[float, Field(gt=0, le=100)] | None = None
    slot: Annotated[Time, Field(ge=0.001)] = 60.0
    failed_at_least: Share | None = None
    failed_above: Share | None = None
    min_outage: Time | None = None
    basis: Literal["sample", "census"] = "sample"
    credits: tuple[CreditTier, ...] = ()
    credit_per_downtime: DowntimeCredit | None = None

    @model_validator(mode="after")
    def _fields_of_the_measure(self) -> Objective:
        needs, allows = _FIELDS[self.measure]
        stated = {name for name in self.model_fields_set if getattr(self, name) is not None}
        present = stated - {"measure", "credits"}
        if self.measure == "response_time" and present & {"mean", "maximum"}:
            needs, allows = set(), {"mean", "maximum"}
        if "within" in present and "under" in needs:
            needs = needs - {"under"} | {"within"}
        if {"under", "within"} <= present:
            raise ValueError("'under' and 'within' exclude each other")
        lacking = sorted(needs - present)
        if lacking:
            raise ValueError(f"an objective of {self.measure} needs '{lacking[0]}'")
        unknown = sorted(present - needs - allows)
        if unknown:
            raise ValueError(f"'{unknown[0]}' has no meaning for {self.measure}; leave it out")
        if self.failed_at_least is not None and self.failed_above is not None:
            raise ValueError("'failed_at_least' and 'failed_above' exclude each other")
        if self.credits and self.credit_per_downtime:
            raise ValueError("'credits' and 'credit_per_downtime' exclude each other")
        _check_tiers(self.credits)
        return self


_SLOTS = {"slot", "failed_at_least", "failed_above", "min_outage", "credit_per_downtime"}
_SLOTS |= {"under", "within"}
_FIELDS: dict[str, tuple[set[str], set[str]]] = {
    "availability": ({"target"}, _SLOTS),
    "response_time": ({"target", "under"}, {"basis"}),
    "throughput": ({"target", "at_least"}, {"slot"}),
    "durability": ({"target"}, {"years", "basis"}),
    "jitter": ({"target", "under"}, {"basis"}),
    "loss": ({"at_most"}, {"basis"}),
    "scaling_time": ({"target", "under"}, {"basis"}),
}
"""Measure -> fields that it needs, and further ones that it may have."""


def _check_tiers(tiers: tuple[CreditTier, ...]) -> None:
    """Refuses tiers that overlap, leave a gap, or give less credit for a worse service."""
    ordered = sorted(tiers, key=lambda tier: tier.below, reverse=True)
    for upper, lower in pairwise(ordered):
        ends = lower.below if upper.at_least is None else upper.at_least
        if upper.below == lower.below or ends < lower.below:
            raise ValueError(
                f"credit tiers overlap below {percent(lower.below)}; let each begin where the "
                "next better one ends"
            )
        if ends > lower.below:
            raise ValueError(
                f"no credit tier covers {percent(lower.below)} to {percent(ends)}; let each "
                "begin where the next better one ends"
            )
        if lower.credit < upper.credit:
            raise ValueError(
                f"the tier below {percent(lower.below)} gives less credit than the better one "
                f"below {percent(upper.below)}; swap the credits"
            )
    if ordered and ordered[-1].at_least:
        raise ValueError(f"no credit tier covers less than {percent(ordered[-1].at_least)}")


def percent(share: Decimal) -> str:
    """Returns a share as text, all digits: 0.9995 is '99.95 %'."""
    text = f"{share * 100:f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


class TermsReading(Record):
    """How terms in another format than this one are to be read.

    unit: of a limit of the response time that has none, e.g. ms. slo: name of the SLO of a file
    with several.
    """

    unit: str = ""
    slo: str = ""


class Exclusion(Record):
    """A time that does not count, such as announced maintenance: ISO 8601, from and to."""

    start: str = Field(alias="from")
    end: str = Field(alias="to")
    reason: str = ""


class Claim(Record):
    """Deadline of a claim: so many days or calendar months after the period or the last outage."""

    days: Annotated[int, Field(gt=0, le=3660)] | None = None
    months: Annotated[int, Field(gt=0, le=120)] | None = None
    after: Literal["period", "incident"] = "period"

    @model_validator(mode="after")
    def _days_or_months(self) -> Claim:
        if (self.days is None) == (self.months is None):
            raise ValueError("a claim has either 'days' or 'months'")
        return self


class Unbilled(Record):
    """Clock intervals (`of`) that are not billed where the service is down longer than `over`."""

    over: Time
    of: Time


class Agreement(Record):
    """A contract or a set of objectives.

    source: where the terms were read, checked: when. effective: date of the terms. service: the one
    that it is about, where the events name several. period: a unit of the calendar, or the length
    of a rolling window. first_period: local time at which the first of consecutive periods starts,
    instead of the calendar's; a period may then be several units (`2 weeks`) or a length, and
    nothing before it is judged. before_use: how slots before a service's first event count. cap:
    maximum credit as a share of the bill. minimum_credit: a credit has to exceed this amount.
    """

    sla: int
    name: Annotated[str, Field(pattern=NAME)]
    title: str
    source: str
    provider: str = ""
    effective: date | None = None
    checked: date | None = None
    scope: str = ""
    service: str = ""
    notes: tuple[str, ...] = ()
    period: str = "month"
    first_period: str | None = None
    time_zone: str = "UTC"
    before_use: Literal["unknown", "good"] = "unknown"
    objectives: Annotated[tuple[Objective, ...], Field(min_length=1, max_length=100)]
    exclusions: tuple[Exclusion, ...] = ()
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")] = "USD"
    cap: Share = Decimal(1)
    minimum_credit: Annotated[Decimal, Field(ge=0, le=10**9)] | None = None
    claim: Claim | None = None
    unbilled: Unbilled | None = None

    @property
    def is_timed(self) -> bool:
        """Returns whether response times or numbers of requests of events are needed."""
        return any(
            objective.measure not in ("availability", "loss") or objective.under or objective.within
            for objective in self.objectives
        )

    @field_validator("sla")
    @classmethod
    def _known_version(cls, value: int) -> int:
        if not CONTRACT.is_readable(value):
            raise ValueError(
                f"version {value} of the format is not known; this program reads {CONTRACT.version}"
            )
        return value

    @field_validator("exclusions")
    @classmethod
    def _known_times(cls, value: tuple[Exclusion, ...]) -> tuple[Exclusion, ...]:
        for text in (text for exclusion in value for text in (exclusion.start, exclusion.end)):
            try:
                datetime.fromisoformat(text.strip())
            except ValueError:
                raise ValueError(
                    f"'{text:.60}' is no time; write ISO 8601, for example 2026-03-29T02:00:00Z"
                ) from None
        return value

    @field_validator("period")
    @classmethod
    def _known_period(cls, value: str) -> str:
        if calendar_unit(value) is None:
            try:
                length_ns = units.parse_duration_ns(value, bare="")
            except UsageError:
                length_ns = 0
            if not 60 * 10**9 <= length_ns <= 3660 * DAY_NS:
                raise ValueError(
                    f"'{value:.40}' is no period; write {', '.join(CALENDAR)}, or a duration "
                    "such as 30d"
                )
        return value

    @field_validator("first_period")
    @classmethod
    def _known_start(cls, value: str | None) -> str | None:
        try:
            start = None if value is None else datetime.fromisoformat(value.strip())
        except ValueError:
            start = _NO_START
        if start is not None and not (start.tzinfo is None and 1970 <= start.year <= 2100):
            raise ValueError(
                f"'{value:.60}' is no local time from 1970 to 2100; write, e.g., 2026-01-01T00:00, "
                "and the zone as time_zone"
            )
        return value

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ValueError, OSError, LookupError):
            raise ValueError(
                f"'{value:.60}' is no time zone; write a name such as Europe/Stockholm"
            ) from None
        return value

    @model_validator(mode="after")
    def _steps_are_no_requests(self) -> Agreement:
        measures = {objective.measure for objective in self.objectives}
        if "scaling_time" in measures and len(measures) > 1:
            second = min(measures - {"scaling_time"})
            raise ValueError(
                f"the events of scaling_time are steps of the demand, those of {second} are "
                "requests; write an agreement for each"
            )
        return self

    @model_validator(mode="after")
    def _several_units_have_a_start(self) -> Agreement:
        unit = calendar_unit(self.period)
        if unit is not None and unit[0] > 1 and self.first_period is None:
            raise ValueError(f"a period of {self.period} needs 'first_period'")
        return self


def nanoseconds(seconds: float) -> int:
    """Returns a time of an agreement as a whole number of ns; seconds of text are inexact."""
    return round(seconds * 1e9)


_NO_START = datetime(1, 1, 1)  # noqa: DTZ001 - local time
CALENDAR = ("day", "week", "month", "quarter", "year")
_UNITS = re.compile(rf"(?:([1-9][0-9]{{0,2}}) +)?({'|'.join(CALENDAR)})s?")


def calendar_unit(period: str) -> tuple[int, str] | None:
    """Returns number and unit of a period of the calendar; None of a length such as 30d."""
    match = _UNITS.fullmatch(period)
    return (int(match[1] or 1), match[2]) if match else None


DAY_NS = 86_400 * 10**9
