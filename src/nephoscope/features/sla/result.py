"""The verdict on an agreement: every service and period, its objectives and the credit owed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path

from nephoscope.core.errors import UsageError
from nephoscope.core.reading import textfile
from nephoscope.core.reading.fields import Record
from nephoscope.core.records import dataclass
from nephoscope.features.sla import credit, judging
from nephoscope.features.sla.credit import Credit, money
from nephoscope.features.sla.events import EventCounts, Events, Stream
from nephoscope.features.sla.notes import Span, notes, span_of
from nephoscope.features.sla.objectives import ObjectiveVerdict, Word
from nephoscope.features.sla.periods import (
    Period,
    deadline_ns,
    instant_ns,
    is_rolling,
    periods_between,
    rolling_window,
    text_of,
)
from nephoscope.features.sla.slots import JudgementContext, Times
from nephoscope.features.sla.terms import Agreement, Exclusion, TermsReading, nanoseconds


@dataclass(frozen=True, slots=True)
class PeriodVerdict:
    """The verdict on one service in one period.

    finished: whether the period is over. unbilled: clock intervals that the agreement does not bill
    because of downtime; null where it has no such rule.
    """

    service: str
    period: str
    start: str
    end: str
    finished: bool
    verdict: Word
    objectives: tuple[ObjectiveVerdict, ...]
    credit: Credit
    unbilled: int | None


@dataclass(frozen=True, slots=True)
class SlaVerdict:
    """Verdicts under an agreement. notes: sentences about the events and how they were counted."""

    agreement: str
    title: str
    source: str
    effective: str | None
    checked: str | None
    time_zone: str
    confidence: float
    events: int
    observers: tuple[str, ...]
    services: tuple[str, ...]
    periods: tuple[PeriodVerdict, ...]
    notes: tuple[str, ...]


class VerdictSettings(Record):
    """Settings of a verdict; an evidence bundle has them too.

    now_ns: end of what can be known, and of a rolling window. terms: how the terms are to be read.
    bills: service, period ('' stands for every one) and amount.
    loss_per_h: business loss.
    """

    now_ns: int
    confidence: float = 0.95
    holds_ns: int = 0
    exclusions: tuple[Exclusion, ...] = ()
    bills: tuple[tuple[str, str, Decimal], ...] = ()
    loss_per_h: Decimal | None = None
    services: tuple[str, ...] = ()
    periods: tuple[str, ...] = ()
    terms: TermsReading = TermsReading()


@dataclass(frozen=True, slots=True)
class ServiceVerdicts:
    """The verdicts on one service. duplicates: events that were counted once."""

    observers: tuple[str, ...]
    span: Span
    duplicates: int
    periods: tuple[PeriodVerdict, ...]


def judge(agreement: Agreement, events: Events, settings: VerdictSettings) -> SlaVerdict:
    """Returns the verdict on every service and period of which there are events."""
    judged = partial(judge_service, agreement, events, settings)
    return verdict_of(agreement, events, events.services(), judged, settings)


def judge_service(
    agreement: Agreement, events: Events, settings: VerdictSettings, service: str
) -> ServiceVerdicts:
    """Returns the verdicts on one service. Raises UsageError."""
    exclusions = _exclusions(agreement, settings.exclusions)
    before = events.duplicates
    streams = events.observers(service)
    return ServiceVerdicts(
        tuple(streams),
        span_of(streams.values()),
        events.duplicates - before,
        tuple(_of_service(agreement, service, list(streams.values()), exclusions, settings)),
    )


def verdict_of(
    agreement: Agreement,
    counts: EventCounts,
    names: Sequence[str],
    judged: Callable[[str], ServiceVerdicts],
    settings: VerdictSettings,
) -> SlaVerdict:
    """Returns the verdict on those of the named services that the terms and settings select.

    judged: returns the verdicts on a service.
    """
    _exclusions(agreement, settings.exclusions)
    services = _selected(names, settings.services, "service")
    if not settings.services and agreement.service in services:
        services = [agreement.service]
    each = {service: judged(service) for service in services}
    spans = {service: own.span for service, own in each.items()}
    verdicts = [verdict for own in each.values() for verdict in own.periods]
    if not verdicts:
        raise UsageError(
            f"All events lie before the first period, which begins at {agreement.first_period} "
            f"({agreement.time_zone}); the last one is of "
            f"{text_of(max(span.last_ns for span in spans.values()))}.",
            "Correct the start of the periods.",
        )
    labels = _selected(list(dict.fromkeys(v.period for v in verdicts)), settings.periods, "period")
    observers = dict.fromkeys(name for own in each.values() for name in own.observers)
    total = EventCounts(counts.rows, counts.backward, sum(own.duplicates for own in each.values()))
    return SlaVerdict(
        agreement.name,
        agreement.title,
        agreement.source,
        None if agreement.effective is None else agreement.effective.isoformat(),
        None if agreement.checked is None else agreement.checked.isoformat(),
        agreement.time_zone,
        settings.confidence,
        total.rows,
        tuple(name for name in observers if name),
        tuple(services),
        tuple(verdict for verdict in verdicts if verdict.period in labels),
        tuple(notes(agreement, total, spans, settings.now_ns, settings.holds_ns)),
    )


def _selected(names: Sequence[str], wanted: Sequence[str], what: str) -> list[str]:
    for name in wanted:
        if name not in names:
            raise UsageError(
                f"The events have no {what} '{name[:80]}'.",
                f"They have: {', '.join(names[:10])}{' …' if len(names) > 10 else ''}.",
            )
    return [name for name in names if not wanted or name in wanted]


def _exclusions(agreement: Agreement, more: Sequence[Exclusion]) -> list[Times]:
    times = []
    for exclusion in (*agreement.exclusions, *more):
        start, end = (
            instant_ns(text, agreement.time_zone) for text in (exclusion.start, exclusion.end)
        )
        if end <= start:
            raise UsageError(
                f"The exclusion from {exclusion.start} to {exclusion.end} has no length.",
                "The end comes after the start.",
            )
        times.append((start, end))
    return times


def _of_service(
    agreement: Agreement,
    service: str,
    streams: Sequence[Stream],
    exclusions: Sequence[Times],
    settings: VerdictSettings,
) -> Iterator[PeriodVerdict]:
    first_ns = min(int(stream.times_ns[0]) for stream in streams)
    last_ns = max(int(stream.times_ns[-1]) for stream in streams)
    around = JudgementContext(
        exclusions,
        settings.now_ns,
        settings.holds_ns,
        settings.confidence,
        agreement.time_zone,
        first_ns if agreement.before_use == "good" else 0,
    )
    if is_rolling(agreement):
        step_ns = nanoseconds(agreement.objectives[0].slot)
        periods = [rolling_window(agreement, settings.now_ns, step_ns)]
    else:
        periods = periods_between(agreement, first_ns, last_ns)
    for period in periods:
        judged = tuple(
            judging.judge(objective, streams, period, around) for objective in agreement.objectives
        )
        words = {verdict.verdict for verdict in judged}
        yield PeriodVerdict(
            service,
            period.label,
            text_of(period.start_ns, agreement.time_zone),
            text_of(period.end_ns, agreement.time_zone),
            period.end_ns <= settings.now_ns,
            "violated" if "violated" in words else "undecided" if "undecided" in words else "met",
            judged,
            _credit(agreement, service, period, judged, settings),
            _unbilled(agreement, judged),
        )


def _credit(
    agreement: Agreement,
    service: str,
    period: Period,
    judged: Sequence[ObjectiveVerdict],
    settings: VerdictSettings,
) -> Credit:
    bill = _bill_of(settings, service, period.label)

    def total(shares: Iterable[float | None]) -> Decimal | None:
        stated = [Decimal(repr(share)) for share in shares if share is not None]
        return credit.capped(agreement, stated) if stated else None

    def paid(share: Decimal | None) -> str | None:
        if bill is None or share is None:
            return None
        return money(credit.amount(agreement, bill, share))

    owed = total(verdict.owed_share for verdict in judged)
    possible = total(verdict.possible_share for verdict in judged)
    loss = None
    if settings.loss_per_h is not None:
        downtime_s = max((verdict.downtime_s or 0.0 for verdict in judged), default=0.0)
        loss = money(settings.loss_per_h * Decimal(repr(downtime_s)) / 3600)
    claim_by, note = None, ""
    if agreement.claim is not None and owed:
        ends = [outage.end for verdict in judged for outage in verdict.outages]
        ends_ns = (instant_ns(end, agreement.time_zone) for end in ends)
        incident_ns = max(ends_ns, default=period.end_ns)
        at_ns = deadline_ns(agreement.claim, period, incident_ns, agreement.time_zone)
        claim_by = text_of(at_ns, agreement.time_zone)
        if at_ns < settings.now_ns:
            note = "The time for a claim is over."
    if owed is None:
        note = "The source of the terms states no schedule of credits."
    return Credit(
        agreement.currency,
        None if bill is None else money(bill),
        None if owed is None else float(owed),
        None if possible is None else float(possible),
        paid(owed),
        paid(possible),
        claim_by,
        loss,
        note,
    )


def _bill_of(settings: VerdictSettings, service: str, label: str) -> Decimal | None:
    bills = {(payer, when): amount for payer, when, amount in settings.bills}
    keys = ((service, label), (service, ""), ("", label), ("", ""))
    return next((bills[key] for key in keys if key in bills), None)


def _unbilled(agreement: Agreement, judged: Sequence[ObjectiveVerdict]) -> int | None:
    """Number of clock intervals with more downtime than the agreement bills."""
    rule = agreement.unbilled
    if rule is None:
        return None
    length_ns = nanoseconds(rule.of)
    down: dict[int, int] = {}
    for outage in next((verdict.outages for verdict in judged if verdict.unit == "slots"), ()):
        at_ns, end_ns = (
            instant_ns(text, agreement.time_zone) for text in (outage.start, outage.end)
        )
        while at_ns < end_ns:
            interval = at_ns // length_ns
            until_ns = min(end_ns, (interval + 1) * length_ns)
            down[interval] = down.get(interval, 0) + until_ns - at_ns
            at_ns = until_ns
    return sum(length > nanoseconds(rule.over) for length in down.values())


def read_bills(path: Path, currency: str) -> dict[tuple[str, str], Decimal]:
    """Returns the bills of a CSV file with the columns service, period, amount and currency.

    Raises UsageError for a wrong row, a second bill, and any other currency than the agreement's.
    """
    bills: dict[tuple[str, str], Decimal] = {}
    text = textfile.read(path, "bill", UsageError)
    columns = ("service", "period", "amount", "currency")
    for where, row in textfile.csv_records(text, str(path), columns, ("amount",)):
        if row.get("currency") and row["currency"] != currency:
            raise UsageError(
                f"{where}: the bill is in {row['currency'][:10]}, the agreement in {currency}.",
                "Convert it at a stated rate first; amounts of two currencies are not added.",
            )
        key = (row.get("service", ""), row.get("period", ""))
        if key in bills:
            raise UsageError(f"{where}: a second bill of this period.", "Add the two amounts.")
        bills[key] = credit.amount_of(row["amount"], where)
    return bills
