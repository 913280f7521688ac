"""What schedules a machine, in words and tables: verdict, fit, shares, evidence."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope.model import Estimate
from nephoscope.report import wording
from nephoscope.report.blocks import (
    Block,
    Column,
    Heading,
    Item,
    Items,
    Sentence,
    Table,
)
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
    for number, one in enumerate(schedulers):
        if several:
            out.append(Heading(charts.name_of(one)))
        out += _one(one, number)
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


def _one(one: Scheduler, number: int) -> list[Block]:
    word = one.word.value
    out: list[Block] = [
        Sentence(f"{word[0].upper()}{word[1:]}: {wording.clean(one.sentence)}", lead=True)
    ]
    out += _contradictions(one)
    fit = _fit(one)
    if fit is not None:
        out.append(fit)
    chart = charts.strip(one, f"scheduler-strip-{number}")
    if chart is not None and number < MAX_STRIPS:
        out.append(chart)
    out += _obtained(one)
    out += _evidence(one)
    return out


def _contradictions(one: Scheduler) -> list[Block]:
    items = [Item(wording.clean(text), "warning") for text in one.contradictions]
    return [Items(tuple(items))] if items else []


def _fit(one: Scheduler) -> Table | None:
    named = {
        "share": one.fit.share,
        "slice per period": one.fit.slice_ns,
        "period": one.fit.period_ns,
    }
    rows = tuple(
        (name, wording.value_text(found), wording.interval_text(found), str(found.n))
        for name, found in named.items()
        if found is not None
    )
    if not rows:
        return None
    head = (
        Column("fitted"),
        Column("value", True),
        Column("interval", True),
        Column("n", True),
    )
    return Table(head, rows)


def _obtained(one: Scheduler) -> list[Block]:
    rows = []
    for found in one.per_cpu:
        where = "unpinned" if found.cpu is None else f"CPU {found.cpu}"
        shares = ", ".join(wording.percent(share, 3) for share in found.share)
        rows.append(
            (
                charts.KINDS.get(found.look, wording.clean(found.look)),
                where,
                str(found.processes),
                shares,
                wording.value_text(found.total),
                wording.interval_text(found.total),
                str(found.total.n),
            )
        )
    if not rows:
        return []
    head = (
        Column("observation"),
        Column("CPU"),
        Column("loops", True),
        Column("share of each", True),
        Column("together", True),
        Column("interval", True),
        Column("n", True),
    )
    return [Table(head, tuple(rows), "Share of each CPU:")]


def _evidence(one: Scheduler) -> list[Block]:
    items = [Item(wording.clean(text)) for text in one.evidence]
    tone = "notice" if one.word is Word.UNCLEAR else ""
    missing = [Item(f"Not observed: {wording.clean(text)}", tone) for text in one.missing]
    if missing and one.next_step:
        last = missing[-1]
        missing[-1] = Item(last.text, last.tone, next_step=wording.clean(one.next_step))
    elif one.next_step:
        missing = [
            Item("More observations are possible.", tone, next_step=wording.clean(one.next_step))
        ]
    every = (*items, *missing)
    return [Items(every)] if every else []
