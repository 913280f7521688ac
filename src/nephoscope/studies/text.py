"""What the `study` verbs print: numbers as they stand, ours beside them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nephoscope.commands import output

if TYPE_CHECKING:
    from nephoscope.store import StoredRun
    from nephoscope.studies import Concluded, Number, Outcome, PartResult, Shelf
    from nephoscope.studies.emulating import Row
    from nephoscope.studies.filling import FilledSheet
    from nephoscope.studies.records import Table

_INDENT = "  "


def entry(row: Mapping[str, Any]) -> str:
    """A study in the list: whose, which parts are here, how many numbers, its last run."""
    authors = row["authors"]
    whose = f"{authors[0]} and others" if len(authors) > 2 else " and ".join(authors)
    here = ", ".join(part["name"] for part in row["parts"] if part["here"])
    later = ", ".join(part["name"] for part in row["parts"] if not part["here"])
    numbers = f"{row['numbers']} published numbers; last run: {row['last_run'] or 'none'}"
    return "\n".join(
        [
            _wrap(f"{row['name']}  {row['title']}", ""),
            _wrap(f"{whose}, {row['year']}"),
            _wrap(f"here: {here}" + (f"; not yet: {later}" if later else "")),
            _wrap(numbers),
        ]
    )


def warnings(stored: StoredRun) -> list[str]:
    """What the run said of the machine that it found: other work makes effects, and hides them."""
    said = [str(e["sentence"]) for e in stored.events() if e.get("event") == "warning"]
    return list(dict.fromkeys(said))


def page(shelf: Shelf) -> str:
    """Everything that the study published, table by table, then the running text."""
    blocks = [_head(shelf), *(_grid(shelf, table) for table in shelf.tables), _prose(shelf)]
    if shelf.lost:
        lost = [_wrap(f"{one.name}: {one.why}.") for one in shelf.lost]
        blocks.append("\n".join(["NOT IN THE TEXT", *lost]))
    return "\n\n".join(blocks)


def _head(shelf: Shelf) -> str:
    study = shelf.study
    lines = [
        _wrap(f"{', '.join(study.authors)}: {study.title}. {study.venue}, {study.year}.", ""),
        _wrap(study.question, ""),
        "",
        "PARTS",
    ]
    for part in study.parts:
        state = f"not yet: {part.not_yet}" if part.not_yet else f"plan: {shelf.path / part.plan}"
        lines.append(_wrap(f"{part.name}: {part.title} ({part.section}); {state}"))
    return "\n".join(lines)


def _grid(shelf: Shelf, table: Table) -> str:
    """A table as it stands, in blocks of columns that fit the page, its notes below."""
    cells = {number.cell: number for number in shelf.numbers if number.table == table.name}
    notes = _Notes()
    of_all = _of_all(number.note for number in cells.values())
    unit = _of_all(number.unit for number in cells.values())

    def text(row: str, column: str) -> str:
        number = cells.get((row, column))
        if number is None:
            return table.words.get(row, {}).get(column, "")
        # A cell in another unit than its column says so.
        alone = "" if unit or _units(column, cells) or f"({number.unit})" in column else number.unit
        return f"{number.text} {alone}".rstrip() + ("" if of_all else notes.mark(number.note))

    rows = {row: [text(row, column) for column in table.columns] for row in table.rows}
    _align(rows)
    heads = [column if unit else _headed(column, cells) for column in table.columns]
    lines = [f"{table.name.upper()}  {table.about}" + (f", in {unit}" if unit else "")]
    for start, end in _blocks(heads, rows):
        body = [(row, *line[start:end]) for row, line in rows.items()]
        right = range(1, end - start + 1)
        lines.append(output.table(("", *heads[start:end]), body, right=list(right)))
    counts = sorted({number.n for number in cells.values() if number.n is not None})
    if counts:
        lines.append(f"n: {', '.join(map(str, counts))}")
    return "\n".join([*lines, *([_wrap(f"All: {of_all}.")] if of_all else []), *notes.lines()])


def _of_all(words: Iterable[str]) -> str:
    """The word, where all are that one; else nothing."""
    found = set(words)
    return found.pop() if len(found) == 1 else ""


def _align(rows: dict[str, list[str]]) -> None:
    """Room behind a number for the marks of its column, so that digits stay below digits."""
    for place in range(len(next(iter(rows.values())))):
        marks = [line[place].partition(" [")[1:] for line in rows.values()]
        wide = max(len(sign + rest) for sign, rest in marks)
        for line, (sign, rest) in zip(rows.values(), marks, strict=True):
            line[place] += " " * (wide - len(sign + rest))


def _headed(column: str, cells: Mapping[tuple[str, str], Number]) -> str:
    """The column's name, with its unit where all its cells share one that it does not name."""
    unit = _units(column, cells)
    return column if not unit or unit in column else f"{column} ({unit})"


def _units(column: str, cells: Mapping[tuple[str, str], Number]) -> str:
    return _of_all(number.unit for cell, number in cells.items() if cell[1] == column)


def _blocks(heads: Sequence[str], rows: dict[str, list[str]]) -> Iterable[tuple[int, int]]:
    first = max(len(row) for row in rows)
    start, used = 0, first
    for place, head in enumerate(heads):
        wide = 2 + max(len(head), *(len(line[place]) for line in rows.values()))
        if place > start and used + wide > output.width():
            yield start, place
            start, used = place, first
        used += wide
    yield start, len(heads)


def _prose(shelf: Shelf) -> str:
    """The numbers that stand in the running text, section by section."""
    printed = {table.name for table in shelf.tables}
    lines: list[str] = []
    notes = _Notes()
    section = ""
    for number in shelf.numbers:
        if number.table in printed:
            continue
        if number.table != section:
            section = number.table
            lines += ["", section.upper()] if lines else [section.upper()]
        value = f"{number.text} {number.unit}".rstrip()
        n = "" if number.n is None else f", n {number.n}"
        line = f"{number.row}, {number.column}: {value}{n}{notes.mark(number.note)}"
        lines.append(
            textwrap.fill(
                line, output.width(), initial_indent=_INDENT, subsequent_indent=_INDENT * 2
            )
        )
    return "\n".join([*lines, *notes.lines()])


class _Notes:
    """Marks for notes, the same mark for the same note, and the notes themselves."""

    def __init__(self) -> None:
        self._marks: dict[str, int] = {}

    def mark(self, note: str) -> str:
        """' [3]' for a note, nothing for none."""
        if not note:
            return ""
        return f" [{self._marks.setdefault(note, len(self._marks) + 1)}]"

    def lines(self) -> list[str]:
        """One entry for each note, wrapped."""
        return [_wrap(f"[{number}] {note}", _INDENT) for note, number in self._marks.items()]


def beside(shelf: Shelf, found: Sequence[PartResult], concluded: Sequence[Concluded]) -> str:
    """Ours beside theirs: of each part its tables and comparisons, then what they add up to."""
    if not found:
        return f"OURS\n{_INDENT}No run yet: `nephoscope study run {shelf.name}`."
    lines = ["OURS BESIDE THEIRS"]
    for part in found:
        lines += ["", f"{_INDENT}{part.part.name}, run {part.run}"]
        lines += [_wrap(f"! {warning}") for warning in part.warnings]
        lines += _emulated(part.emulated)
        for sheet in part.sheets:
            lines += ["", *_sheet(sheet)]
        for one in part.outcomes:
            lines += ["", *_comparison(one)]
    lines += _together(found)
    for conclusion in concluded:
        lines += ["", _wrap(f"CONCLUSION {conclusion.mark.value.upper()}: {conclusion.claim}", "")]
        lines += [_wrap(conclusion.sentence)]
        for name, outcome in conclusion.evidence:
            lines.append(_wrap(f"{name}: {outcome.mark.value if outcome else 'not measured'}"))
    return "\n".join(lines)


def _together(parts: Sequence[PartResult]) -> list[str]:
    """Published, measured and simulated, side by side; nothing where not both are here."""
    from nephoscope.studies import together
    from nephoscope.studies.page import joined
    from nephoscope.studies.telling import told_estimate

    found = joined(parts)
    if not found:
        return []
    lines = ["", "PUBLISHED, MEASURED AND SIMULATED", _wrap(together.summary(found))]
    for one in found:
        table, (row, column) = one.where
        lines += [
            "",
            _wrap(f"{one.verdict.upper()}: {table}, {row}, {column}", ""),
            _wrap(f"published  {one.published:g} {one.unit}".rstrip(), _INDENT, 13),
            _wrap(f"measured   {told_estimate(one.measured, one.unit)}", _INDENT, 13),
            _wrap(f"simulated  {told_estimate(one.simulated, one.unit)}", _INDENT, 13),
        ]
    return lines


def _emulated(rows: Sequence[Row]) -> list[str]:
    """Set, measured and published, row by row."""
    from nephoscope.studies import emulating

    if not rows:
        return []
    lines = ["", "EMULATED ROWS", _wrap(emulating.summary(rows))]
    for row in rows:
        lines += ["", _wrap(f"{row.title}", "")]
        for cell in row.cells:
            lines += [
                _wrap(f"{cell.word.upper()}: {cell.what}, set to {cell.set_to:.4g} {row.unit}"),
                _wrap(f"ours    {emulating.told_ours(cell, row.unit)}", _INDENT * 2, 12),
            ]
            if cell.theirs:
                told = emulating.told_theirs(cell)
                lines.append(_wrap(f"theirs  {told}", _INDENT * 2, 12))
        if row.expected:
            lines.append(_wrap(emulating.told_verdict(row)))
    return lines


def _sheet(sheet: FilledSheet) -> list[str]:
    from nephoscope.studies import filling

    lines = [_wrap(f"{sheet.table.upper()}  {sheet.title}", "")]
    for cell in sheet.cells:
        lines += [
            _wrap(f"{cell.row}, {cell.column}"),
            _wrap(f"theirs  {filling.told_theirs(cell)}", _INDENT * 2, 12),
            _wrap(f"ours    {filling.told_ours(cell)}", _INDENT * 2, 12),
        ]
    return [*lines, _wrap(sheet.why)]


def _comparison(one: Outcome) -> list[str]:
    from nephoscope.studies import telling

    return [
        _wrap(f"{one.mark.value.upper()}: {one.claim}", ""),
        _wrap(f"theirs  {telling.told_theirs(one)}", _INDENT, 10),
        _wrap(f"ours    {telling.told_ours(one)}", _INDENT, 10),
        _wrap(one.sentence),
        *(_wrap(f"of theirs: {note}") for note in one.figure.notes),
    ]


def summary(found: Sequence[PartResult], seconds: float) -> str:
    """One line for each part that was measured, and how long all of them took."""
    from nephoscope import studies, units

    rows = [(one.part.name, studies.counted(one.outcomes)) for one in found]
    head = f"IN SHORT  {len(found)} parts in {units.format_duration(seconds)}"
    return "\n".join([head, *(_wrap(f"{name}: {told}", _INDENT, 4) for name, told in rows)])


def _wrap(text: str, indent: str = _INDENT, hang: int | None = None) -> str:
    later = indent if hang is None else " " * hang
    return textwrap.fill(
        text, output.width(), initial_indent=indent, subsequent_indent=later, break_on_hyphens=False
    )
