"""What schedules a machine, in words and tables: verdict, fit, shares, evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from nephoscope.model import Estimate
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Column, Heading, Item, Sentence, Table, items
from nephoscope.scheduler import charts
from nephoscope.scheduler.inference import Fit, Scheduler, Word

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
    rows = tuple((charts.name_of(one), one.word.value, *_fit_cells(one.fit)) for one in schedulers)
    head = (*Column.texts("target", "verdict"), *Column.numbers("share", "slice", "period"))
    return Table(head, rows)


def _fit_cells(fit: Fit) -> Iterable[str]:
    return map(_short, (fit.share, fit.slice_ns, fit.period_ns))


def _short(estimate: Estimate | None) -> str:
    return "–" if estimate is None else wording.value_text(estimate)


def _scheduler_blocks(scheduler: Scheduler, number: int) -> list[Block]:
    word = scheduler.word.value
    out: list[Block] = [
        Sentence(f"{word[0].upper()}{word[1:]}: {wording.clean(scheduler.sentence)}", lead=True),
        *items(scheduler.contradictions, "warning"),
        *_fit(scheduler.fit),
    ]
    chart = charts.strip(scheduler, f"scheduler-strip-{number}")
    if chart is not None and number < MAX_STRIPS:
        out.append(chart)
    return [*out, *_obtained(scheduler), *_evidence(scheduler)]


def _fit(fit: Fit) -> list[Block]:
    named = {"share": fit.share, "slice per period": fit.slice_ns, "period": fit.period_ns}
    rows = tuple(
        (name, wording.value_text(found), wording.interval_text(found), str(found.n))
        for name, found in named.items()
        if found is not None
    )
    head = (Column("fitted"), *Column.numbers("value", "interval", "n"))
    return [Table(head, rows)] if rows else []


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
    head = Column.head(("observation", "CPU"), ("loops", "share of each", "total", "interval", "n"))
    return [Table(head, tuple(rows), "Share of each CPU:")]


def _evidence(scheduler: Scheduler) -> list[Block]:
    tone = "notice" if scheduler.word is Word.UNCLEAR else ""
    missing = [f"Not observed: {wording.clean(text)}" for text in scheduler.missing]
    if scheduler.next_step and not missing:
        missing = ["More observations are possible."]
    evidence = [Item(wording.clean(text)) for text in scheduler.evidence]
    evidence += [Item(text, tone) for text in missing]
    if scheduler.next_step:
        evidence[-1] = replace(evidence[-1], next_step=wording.clean(scheduler.next_step))
    return items(evidence)
