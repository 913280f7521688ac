"""What schedules a machine, in words and tables: verdict, fit, shares, evidence."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope.model import Estimate
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Column, Heading, Item, Items, Sentence, Table
from nephoscope.scheduler import charts
from nephoscope.scheduler.inference import Scheduler, Word

MAX_STRIPS = 8
"""Targets with a strip of their own; the others are in the tables."""


def blocks(schedulers: Sequence[Scheduler]) -> list[Block]:
    """Everything that is known of the schedulers of a run's targets."""
    if not schedulers:
        return []
    several = len(schedulers) > 1
    out: list[Block] = []
    if several:
        out += [Heading("Scheduling policy"), _verdicts(schedulers)]
    for number, scheduler in enumerate(schedulers):
        if several:
            out.append(Heading(charts.name_of(scheduler)))
        out += _scheduler_blocks(scheduler, number)
    if several:
        out.append(Heading("Run, wait and period lengths"))
    return [*out, *charts.distributions(schedulers)]


def _verdicts(schedulers: Sequence[Scheduler]) -> Table:
    rows = tuple((charts.name_of(one), one.word.value, *_fit_cells(one)) for one in schedulers)
    head = (
        Column("target"),
        Column("verdict"),
        Column("share", True),
        Column("slice", True),
        Column("period", True),
    )
    return Table(head, rows)


def _fit_cells(one: Scheduler) -> tuple[str, str, str]:
    fit = one.fit
    return (_short(fit.share), _short(fit.slice_ns), _short(fit.period_ns))


def _short(estimate: Estimate | None) -> str:
    return "–" if estimate is None else wording.value_text(estimate)


def _scheduler_blocks(scheduler: Scheduler, number: int) -> list[Block]:
    word = scheduler.word.value
    out: list[Block] = [
        Sentence(f"{word[0].upper()}{word[1:]}: {wording.clean(scheduler.sentence)}", lead=True)
    ]
    out += _contradictions(scheduler)
    fit = _fit(scheduler)
    if fit is not None:
        out.append(fit)
    chart = charts.strip(scheduler, f"scheduler-strip-{number}")
    if chart is not None and number < MAX_STRIPS:
        out.append(chart)
    out += _obtained(scheduler)
    out += _evidence(scheduler)
    return out


def _contradictions(one: Scheduler) -> list[Block]:
    items = [Item(wording.clean(text), "warning") for text in one.contradictions]
    return [Items(tuple(items))] if items else []


def _fit(scheduler: Scheduler) -> Table | None:
    named = {
        "share": scheduler.fit.share,
        "slice per period": scheduler.fit.slice_ns,
        "period": scheduler.fit.period_ns,
    }
    rows = tuple(
        (name, wording.value_text(found), wording.interval_text(found), str(found.n))
        for name, found in named.items()
        if found is not None
    )
    if not rows:
        return None
    head = (Column("fitted"), Column("value", True), Column("interval", True), Column("n", True))
    return Table(head, rows)


def _obtained(one: Scheduler) -> list[Block]:
    rows = []
    for obtained in one.per_cpu:
        where = "unpinned" if obtained.cpu is None else f"CPU {obtained.cpu}"
        shares = ", ".join(wording.percent(share, 3) for share in obtained.share)
        rows.append(
            (
                charts.KINDS.get(obtained.look, wording.clean(obtained.look)),
                where,
                str(obtained.processes),
                shares,
                wording.value_text(obtained.total),
                wording.interval_text(obtained.total),
                str(obtained.total.n),
            )
        )
    if not rows:
        return []
    head = (
        Column("observation"),
        Column("CPU"),
        Column("loops", True),
        Column("share of each", True),
        Column("total", True),
        Column("interval", True),
        Column("n", True),
    )
    return [Table(head, tuple(rows), "Share of each CPU:")]


def _evidence(scheduler: Scheduler) -> list[Block]:
    items = [Item(wording.clean(text)) for text in scheduler.evidence]
    tone = "notice" if scheduler.word is Word.UNCLEAR else ""
    missing = [Item(f"Not observed: {wording.clean(text)}", tone) for text in scheduler.missing]
    if missing and scheduler.next_step:
        last = missing[-1]
        missing[-1] = Item(last.text, last.tone, next_step=wording.clean(scheduler.next_step))
    elif scheduler.next_step:
        missing = [
            Item(
                "More observations are possible.",
                tone,
                next_step=wording.clean(scheduler.next_step),
            )
        ]
    every = (*items, *missing)
    return [Items(every)] if every else []
