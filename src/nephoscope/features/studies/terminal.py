"""Text of the `study` verbs: published numbers as printed, and the comparison with them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nephoscope.cli.kit import output

if TYPE_CHECKING:
    from nephoscope.features.studies.catalogue import Number, ReferenceStudy
    from nephoscope.features.studies.comparison.conclusions import ConclusionOutcome
    from nephoscope.features.studies.comparison.part_result import PartResult
    from nephoscope.features.studies.definition.study import PrintedTable
    from nephoscope.store import StoredRun

_INDENT = "  "


def list_entry(row: Mapping[str, Any]) -> str:
    """Returns a study's entry in the list: authors, parts, count of numbers, its last run."""
    authors = row["authors"]
    names = f"{authors[0]} and others" if len(authors) > 2 else " and ".join(authors)
    available = ", ".join(part["name"] for part in row["parts"] if part["available"])
    missing = ", ".join(part["name"] for part in row["parts"] if not part["available"])
    not_yet = f"; not yet: {missing}" if missing else ""
    states = ", ".join(f"{count} {state}" for state, count in row["contents"].items() if count)
    return "\n".join(
        [
            _wrap(f"{row['name']}  {row['title']}", ""),
            _wrap(f"{names}, {row['year']}"),
            _wrap(f"parts: {available}{not_yet}"),
            _wrap(f"tables, figures and experiments: {states}"),
            _wrap(f"{row['numbers']} published numbers; last run: {row['last_run'] or 'none'}"),
        ]
    )


def warnings(stored: StoredRun) -> list[str]:
    """Returns the run's warnings about the machine: other work makes effects, and hides them."""
    sentences = (str(e["sentence"]) for e in stored.events() if e.get("event") == "warning")
    return list(dict.fromkeys(sentences))


def comparison(
    study: ReferenceStudy, parts: Sequence[PartResult], conclusions: Sequence[ConclusionOutcome]
) -> str:
    """Returns the comparison with the study, without its charts."""
    from nephoscope.features.studies.report import section
    from nephoscope.report import terminal_output
    from nephoscope.report.blocks import Chart, Section

    if not parts:
        return f"No run yet: `nephoscope study run {study.name}`."
    sections = [
        Section(each.id, each.title, [b for b in each.blocks if not isinstance(b, Chart)])
        for each in section.sections(study, parts, conclusions)
    ]
    colour = output.colour_wanted()
    return terminal_output.render(
        section.title_of(study), sections, colour=colour, width=output.width()
    )


def published(study: ReferenceStudy) -> str:
    """Returns everything that the study published: its tables, then the running text."""
    from nephoscope.features.studies import agreements

    blocks = [
        _head(study),
        _contents(study),
        *(_grid(study, table) for table in study.tables),
        _prose(study),
    ]
    if computed := agreements.figures(study):
        rows = [_wrap(line) for line in agreements.lines(computed)]
        blocks.append("\n".join(["AGREEMENTS", *rows]))
    if study.missing:
        missing = [_wrap(f"{table.name}: {table.why}.") for table in study.missing]
        blocks.append("\n".join(["NOT IN THE TEXT", *missing]))
    return "\n\n".join(blocks)


def _head(study: ReferenceStudy) -> str:
    about = study.definition
    lines = [
        _wrap(f"{', '.join(about.authors)}: {about.title}. {about.venue}, {about.year}.", ""),
        _wrap(about.question, ""),
        "",
        "PARTS",
    ]
    for part in about.parts:
        state = f"not yet: {part.not_yet}" if part.not_yet else f"plan: {study.path / part.plan}"
        if part.agreements:
            state = "computed from the terms of agreements, see below"
        lines.append(_wrap(f"{part.name}: {part.title} ({part.section}); {state}"))
    return "\n".join(lines)


def _contents(study: ReferenceStudy) -> str:
    """Every table, figure and experiment of the study, by what can be done with it here."""
    from nephoscope.features.studies.definition.contents import STATES

    lines = ["CONTENTS"]
    for state in STATES:
        entries = [entry for entry in study.contents if entry.state == state]
        if entries:
            lines.append(_wrap(f"{state}:"))
        texts = (f"{entry.name}, {entry.title}: {entry.explanation}" for entry in entries)
        lines += [_wrap(text, "    ", hang=6) for text in texts]
    return "\n".join(lines)


def _grid(study: ReferenceStudy, table: PrintedTable) -> str:
    """A table as printed, in blocks of columns that fit the page, its notes below."""
    cells = {number.cell: number for number in study.numbers if number.table == table.name}
    notes = _Notes()
    common_note = _common(number.note for number in cells.values())
    unit = _common(number.unit for number in cells.values())

    def text(row: str, column: str) -> str:
        number = cells.get((row, column))
        if number is None:
            return table.text.get(row, {}).get(column, "")
        # A cell in another unit than its column shows it.
        has_unit = unit or _unit_of(column, cells) or f"({number.unit})" in column
        with_unit = number.text if has_unit else f"{number.text} {number.unit}".rstrip()
        return with_unit + ("" if common_note else notes.mark(number.note))

    rows = {row: [text(row, column) for column in table.columns] for row in table.rows}
    _align(rows)
    heads = [column if unit else _head_of(column, cells) for column in table.columns]
    lines = [f"{table.name.upper()}  {table.about}" + (f", in {unit}" if unit else "")]
    for start, end in _column_blocks(heads, rows):
        body = [(row, *line[start:end]) for row, line in rows.items()]
        right = list(range(1, end - start + 1))
        lines.append(output.table(("", *heads[start:end]), body, right=right))
    counts = sorted({number.n for number in cells.values() if number.n is not None})
    if counts:
        lines.append(f"n: {', '.join(map(str, counts))}")
    if common_note:
        lines.append(_wrap(f"All: {common_note}."))
    return "\n".join([*lines, *notes.lines()])


def _common(words: Iterable[str]) -> str:
    """The word, where all are equal; else nothing."""
    distinct = set(words)
    return distinct.pop() if len(distinct) == 1 else ""


def _align(rows: dict[str, list[str]]) -> None:
    """Pads numbers for the marks of their column, so that digits stand below digits."""
    for column in range(len(next(iter(rows.values())))):
        marks = [line[column].partition(" [")[1:] for line in rows.values()]
        widest = max(len(sign + rest) for sign, rest in marks)
        for line, (sign, rest) in zip(rows.values(), marks, strict=True):
            line[column] += " " * (widest - len(sign + rest))


def _head_of(column: str, cells: Mapping[tuple[str, str], Number]) -> str:
    """The column's name, with the unit of its cells where they share one that it does not name."""
    unit = _unit_of(column, cells)
    return column if not unit or unit in column else f"{column} ({unit})"


def _unit_of(column: str, cells: Mapping[tuple[str, str], Number]) -> str:
    return _common(number.unit for cell, number in cells.items() if cell[1] == column)


def _column_blocks(heads: Sequence[str], rows: dict[str, list[str]]) -> Iterable[tuple[int, int]]:
    row_width = max(len(row) for row in rows)
    start, used = 0, row_width
    for column, head in enumerate(heads):
        width = 2 + max(len(head), *(len(line[column]) for line in rows.values()))
        if column > start and used + width > output.width():
            yield start, column
            start, used = column, row_width
        used += width
    yield start, len(heads)


def _prose(study: ReferenceStudy) -> str:
    """The numbers of the running text, section by section."""
    printed = {table.name for table in study.tables}
    lines: list[str] = []
    notes = _Notes()
    section = ""
    for number in study.numbers:
        if number.table in printed:
            continue
        if number.table != section:
            section = number.table
            lines += ["", section.upper()] if lines else [section.upper()]
        value = f"{number.text} {number.unit}".rstrip()
        n = "" if number.n is None else f", n {number.n}"
        line = f"{number.row}, {number.column}: {value}{n}{notes.mark(number.note)}"
        lines.append(_wrap(line, hang=4, break_on_hyphens=True))
    return "\n".join([*lines, *notes.lines()])


class _Notes:
    """Marks for notes, the same mark for the same note, and the notes themselves."""

    def __init__(self) -> None:
        self._marks: dict[str, int] = {}

    def mark(self, note: str) -> str:
        """Returns ' [3]' for a note, nothing for none."""
        if not note:
            return ""
        return f" [{self._marks.setdefault(note, len(self._marks) + 1)}]"

    def lines(self) -> list[str]:
        """Returns one entry for each note, wrapped."""
        return [_wrap(f"[{number}] {note}") for note, number in self._marks.items()]


def summary(parts: Sequence[PartResult], seconds: float) -> str:
    """Returns one line for each part that was measured, and how long all of them took."""
    from nephoscope.core import units
    from nephoscope.core.naming import plural
    from nephoscope.features.studies.report.section import count_marks

    head = f"SUMMARY  {plural(len(parts), 'part')} in {units.format_duration(seconds)}"
    lines = (_wrap(f"{each.part.name}: {count_marks(each.outcomes)}", hang=4) for each in parts)
    return "\n".join([head, *lines])


def _wrap(
    text: str, indent: str = _INDENT, hang: int | None = None, *, break_on_hyphens: bool = False
) -> str:
    return textwrap.fill(
        text,
        output.width(),
        initial_indent=indent,
        subsequent_indent=indent if hang is None else " " * hang,
        break_on_hyphens=break_on_hyphens,
    )
