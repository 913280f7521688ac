"""The study's own report: conclusions, tables filled, figures drawn, every comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from nephoscope.report import as_html, as_markdown, wording
from nephoscope.report.blocks import (
    Block,
    Column,
    Heading,
    Item,
    Items,
    Section,
    Sentence,
    Table,
)
from nephoscope.studies import emulating, filling, plots, together
from nephoscope.studies.comparing import Outcome
from nephoscope.studies.concluding import Concluded
from nephoscope.studies.drawing import Picture
from nephoscope.studies.emulating import Row
from nephoscope.studies.filling import FilledSheet
from nephoscope.studies.records import Part
from nephoscope.studies.rules import Mark
from nephoscope.studies.shelf import Shelf
from nephoscope.studies.telling import told_estimate, told_ours, told_theirs
from nephoscope.studies.together import Beside

_TONES = {
    Mark.IN_NUMBER: "info",
    Mark.IN_KIND: "info",
    Mark.CONTRADICTED: "warning",
    Mark.NOT_COMPARABLE: "notice",
}


@dataclass(frozen=True, slots=True)
class PartResult:
    """What one run of a part says beside the study. warnings: what the run said of the machine."""

    part: Part
    run: str
    outcomes: tuple[Outcome, ...]
    sheets: tuple[FilledSheet, ...] = ()
    pictures: tuple[Picture, ...] = ()
    warnings: tuple[str, ...] = ()
    emulated: tuple[Row, ...] = ()


def html(shelf: Shelf, parts: Sequence[PartResult], concluded: Sequence[Concluded] = ()) -> str:
    """The page, which opens without network."""
    return as_html.render(_title(shelf), _subtitle(shelf), sections(shelf, parts, concluded))


def markdown(shelf: Shelf, parts: Sequence[PartResult], concluded: Sequence[Concluded] = ()) -> str:
    """The same as Markdown."""
    return as_markdown.render(_title(shelf), sections(shelf, parts, concluded))


def sections(
    shelf: Shelf, parts: Sequence[PartResult], concluded: Sequence[Concluded]
) -> list[Section]:
    """A summary, then a section for each part that was run."""
    return [
        _summary(shelf, parts, concluded),
        *_together(joined(parts)),
        *(_part(one) for one in parts),
    ]


def joined(parts: Sequence[PartResult]) -> list[Beside]:
    """Published numbers of which one part measured ours, and another simulated it."""
    return together.together(
        [outcome for one in parts for outcome in one.outcomes],
        [row for one in parts for row in one.emulated],
    )


def _together(found: Sequence[Beside]) -> list[Section]:
    """Published, measured and simulated, side by side; nothing where not both are here."""
    if not found:
        return []
    blocks: list[Block] = [Sentence(together.summary(found), lead=True)]
    for table, own in together.by_table(found).items():
        head = (
            Column("row"),
            Column("figure"),
            Column("published", True),
            Column("measured in the lab", True),
            Column("simulated", True),
            Column(""),
        )
        rows = tuple(
            (
                wording.clean(row),
                wording.clean(column),
                f"{one.published:g} {one.unit}".rstrip(),
                told_estimate(one.measured, ""),
                told_estimate(one.simulated, ""),
                one.verdict,
            )
            for one in own
            for row, column in (one.where[1],)
        )
        blocks += [Heading(table), Table(head, rows)]
    blocks.append(
        Sentence(
            "A figure is 'as published' where the comparison below says 'reproduced in number': "
            "its whole interval lies within the margin. The study gives these figures without "
            "interval or n."
        )
    )
    return [Section("together", "Published, measured and simulated", tuple(blocks))]


def _title(shelf: Shelf) -> str:
    return f"Ours beside {shelf.name}"


def _subtitle(shelf: Shelf) -> str:
    study = shelf.study
    return f"{', '.join(study.authors)}: {study.title} ({study.year})"


def counted(outcomes: Sequence[Outcome]) -> str:
    """'4 reproduced in kind, 1 contradicted, 3 not comparable'."""
    found = Counter(one.mark for one in outcomes)
    return ", ".join(f"{found[mark]} {mark.value}" for mark in Mark if found[mark]) or "nothing"


def _summary(shelf: Shelf, parts: Sequence[PartResult], concluded: Sequence[Concluded]) -> Section:
    blocks: list[Block] = [Sentence(shelf.study.question, lead=True)]
    if concluded:
        blocks.append(Heading("What the study concluded"))
        blocks.append(
            Items(
                tuple(
                    Item(
                        wording.clean(f"{one.mark.value}: {one.claim}"),
                        tone=_TONES[one.mark],
                        details=(one.sentence, *_evidence(one)),
                    )
                    for one in concluded
                )
            )
        )
    rows = tuple((one.part.name, one.part.title, counted(one.outcomes), one.run) for one in parts)
    head = (Column("part"), Column("what"), Column("comparisons"), Column("run"))
    blocks += [Heading("Parts"), Table(head, rows)]
    missing = [part for part in shelf.study.parts if part.not_yet]
    if missing:
        items = tuple(Item(f"{part.name}: {part.title}; {part.not_yet}") for part in missing)
        blocks += [Heading("Not here"), Items(items)]
    return Section("summary", "In short", tuple(blocks))


def _evidence(concluded: Concluded) -> list[str]:
    return [
        f"{name}: {outcome.mark.value}; theirs {told_theirs(outcome)}; ours {told_ours(outcome)}"
        if outcome
        else f"{name}: not measured"
        for name, outcome in concluded.evidence
    ]


def _part(one: PartResult) -> Section:
    blocks: list[Block] = [Sentence(f"{one.part.section}; run {one.run}.")]
    if one.warnings:
        blocks.append(Items(tuple(Item(text, tone="warning") for text in one.warnings)))
    blocks += _emulated(one.emulated)
    for sheet in one.sheets:
        blocks += [Heading(f"{sheet.table}: {sheet.title}"), _sheet(sheet), Sentence(sheet.why)]
    blocks += [plots.chart(picture) for picture in one.pictures]
    if one.outcomes:
        blocks += [Heading("Comparisons"), _comparisons(one.outcomes)]
    return Section(one.part.name, one.part.title, tuple(blocks))


def _emulated(rows: Sequence[Row]) -> list[Block]:
    """Set, measured and published, row by row; then what each is called from inside."""
    if not rows:
        return []
    head = (
        Column("row"),
        Column("share of"),
        Column("set", True),
        Column("ours"),
        Column(""),
        Column("theirs"),
    )
    lines = tuple(
        (
            row.title if not index else "",
            cell.what,
            f"{cell.set_to:.4g}",
            emulating.told_ours(cell, row.unit),
            cell.word,
            emulating.told_theirs(cell),
        )
        for row in rows
        for index, cell in enumerate(row.cells)
    )
    items = tuple(
        Item(
            wording.clean(
                f"{row.title}: {emulating.told_verdict(row) or 'not asked from inside.'}"
            ),
            tone="" if row.verdict == row.expected else "warning",
            details=(row.why,),
        )
        for row in rows
    )
    return [
        Heading("Emulated rows: set, measured, published"),
        Sentence(emulating.summary(rows)),
        Table(head, lines),
        Items(items),
    ]


def _sheet(sheet: FilledSheet) -> Table:
    head = (Column(""), Column(""), Column("theirs"), Column("ours"))
    rows = tuple(
        (cell.row, cell.column, filling.told_theirs(cell), filling.told_ours(cell))
        for cell in sheet.cells
    )
    return Table(head, rows)


def _comparisons(outcomes: Sequence[Outcome]) -> Items:
    return Items(
        tuple(
            Item(
                wording.clean(f"{one.mark.value}: {one.claim}"),
                tone=_TONES[one.mark],
                details=(
                    f"theirs: {told_theirs(one)}",
                    f"ours: {told_ours(one)}",
                    one.sentence,
                    *(f"of theirs: {note}" for note in one.figure.notes),
                ),
            )
            for one in outcomes
        )
    )
