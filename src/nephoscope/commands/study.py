"""`nephoscope study list|show|run`: the reference studies, and ours beside theirs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope.commands import output

if TYPE_CHECKING:
    from nephoscope.store import Store, StoredRun
    from nephoscope.studies import Number, Outcome, Part, Shelf
    from nephoscope.studies.records import Table

_INDENT = "  "


def list_(*, store: Path | None, as_json: bool) -> int:
    """Prints every study: parts, how many numbers it published, its last run here."""
    from nephoscope import studies
    from nephoscope.store import Store

    place = Store(store)
    rows = [_row(shelf, place) for shelf in studies.load_all()]
    if as_json:
        output.document({"studies": rows})
        return 0
    for row in rows:
        output.say(_wrap(f"{row['name']}  {row['title']}", ""))
        output.say(
            _wrap(
                f"{row['authors'][0]} and others"
                if len(row["authors"]) > 2
                else " and ".join(row["authors"])
            )
        )
        here = ", ".join(part["name"] for part in row["parts"] if part["here"])
        later = ", ".join(part["name"] for part in row["parts"] if not part["here"])
        output.say(_wrap(f"here: {here}" + (f"; not yet: {later}" if later else "")))
        output.say(
            _wrap(f"{row['numbers']} published numbers; last run: {row['last_run'] or 'none'}")
        )
        output.say()
    output.say("`nephoscope study show NAME` prints the numbers, `study run NAME` measures ours.")
    return 0


def show(name: str, *, store: Path | None, as_json: bool) -> int:
    """Prints a study's numbers as they stand, and ours beside them where a run exists."""
    from nephoscope import studies
    from nephoscope.store import Store

    shelf = studies.load(name)
    found = _compared(shelf, Store(store))
    if as_json:
        output.document(_document(shelf, found))
        return 0
    output.say(_head(shelf))
    for table in shelf.tables:
        output.say("\n" + _grid(shelf, table))
    output.say("\n" + _prose(shelf))
    if shelf.lost:
        output.say("\nNOT IN THE TEXT")
        for lost in shelf.lost:
            output.say(_wrap(f"{lost.name}: {lost.why}."))
    output.say("\n" + _comparisons(shelf, found))
    return 0


def run(
    name: str,
    *,
    scale: str,
    parts: Sequence[str],
    store: Path | None,
    seed: int | None,
    as_json: bool,
    fresh: bool,
) -> int:
    """Measures the parts that exist here, one after the other, and prints the comparison.

    A part that fails does not keep the others from being measured; the exit code is the worst.
    """
    from nephoscope import studies
    from nephoscope.errors import NephoscopeError, RunFailed
    from nephoscope.store import Store

    shelf = studies.load(name)
    chosen = [shelf.part(part) for part in parts] or [p for p in shelf.study.parts if p.plan]
    # Every plan is read before anything is measured.
    plans = [(part, _seeded(studies.plan_of(shelf, part, scale), seed)) for part in chosen]
    found: list[tuple[StoredRun, list[Outcome]]] = []
    code = 0
    for part, plan in plans:
        try:
            found.append(_measured(shelf, part, plan, Store(store), fresh=fresh))
        except RunFailed as error:
            if error.exit_code == 130:
                raise
            code = max(
                code, output.complain(f"{shelf.name}, {part.name}: {error}", error.exit_code)
            )
        except NephoscopeError as error:
            if len(plans) == 1:
                raise
            code = max(
                code, output.complain(f"{shelf.name}, {part.name}: {error}", error.exit_code)
            )
    if as_json:
        output.document(_run_document(shelf, scale, found))
    else:
        output.say(_comparisons(shelf, found))
    return code or (0 if all(_valid(run) for run, _ in found) else 3)


def _seeded(plan: Any, seed: int | None) -> Any:
    return plan if seed is None else plan.model_copy(update={"seed": seed})


def _measured(
    shelf: Shelf, part: Part, plan: Any, store: Store, *, fresh: bool
) -> tuple[StoredRun, list[Outcome]]:
    from nephoscope import report, results, runs, studies
    from nephoscope.commands import measuring

    output.log(f"{shelf.name}, {part.name}: {part.title}")
    stored = measuring.executed(plan, store, fresh=fresh)
    result = measuring.finished(results.build(stored))
    report.write(result, stored.report_path)
    outcomes = studies.compare(shelf, part, result)
    page = studies.write(shelf, stored.id, outcomes, stored.report_path)
    runs.mark_reported(stored)
    output.log(f"Report: {stored.report_path / 'report.html'}\nComparison: {page}")
    return stored, outcomes


def _valid(stored: StoredRun) -> bool:
    from nephoscope.store import counts

    return any(counts(record) for record in stored.records())


def _compared(shelf: Shelf, store: Store) -> list[tuple[StoredRun, list[Outcome]]]:
    """The newest run of each part that is here, compared anew."""
    from nephoscope import results, studies

    found = []
    for part in shelf.study.parts:
        stored = _last_run(shelf.plan_names(part), store)
        if stored is not None:
            found.append((stored, studies.compare(shelf, part, results.build(stored))))
    return found


def _last_run(plan_names: Sequence[str], store: Store) -> StoredRun | None:
    """The newest run of those plans that measured something to the end."""
    from nephoscope.store import FINISHED, MEASURED

    mine = [
        stored
        for stored in store.runs()
        if stored.manifest.get("plan_name") in plan_names and stored.state in (FINISHED, MEASURED)
    ]
    return max(mine, key=lambda stored: float(stored.manifest.get("created_at", 0)), default=None)


def _row(shelf: Shelf, store: Store) -> dict[str, Any]:
    names = [name for part in shelf.study.parts for name in shelf.plan_names(part)]
    last = _last_run(names, store)
    return {
        "name": shelf.name,
        "title": shelf.study.title,
        "authors": list(shelf.study.authors),
        "year": shelf.study.year,
        "numbers": len(shelf.numbers),
        "parts": [
            {"name": part.name, "title": part.title, "here": bool(part.plan)}
            for part in shelf.study.parts
        ],
        "last_run": last.id if last else None,
    }


def _document(shelf: Shelf, found: Sequence[tuple[StoredRun, list[Outcome]]]) -> dict[str, Any]:
    from nephoscope.studies.writing import finite

    study = shelf.study
    document: dict[str, Any] = {
        "name": shelf.name,
        "title": study.title,
        "authors": list(study.authors),
        "year": study.year,
        "venue": study.venue,
        "question": study.question,
        "parts": [
            {"name": p.name, "title": p.title, "section": p.section, "not_yet": p.not_yet or None}
            for p in study.parts
        ],
        "tables": [table.model_dump() for table in shelf.tables],
        "lost": [lost.model_dump() for lost in shelf.lost],
        "numbers": [asdict(number) for number in shelf.numbers],
        **_found(found),
    }
    return dict(finite(document))


def _run_document(
    shelf: Shelf, scale: str, found: Sequence[tuple[StoredRun, list[Outcome]]]
) -> dict[str, Any]:
    from nephoscope.studies.writing import finite

    return dict(finite({"name": shelf.name, "scale": scale, **_found(found)}))


def _found(found: Sequence[tuple[StoredRun, list[Outcome]]]) -> dict[str, Any]:
    return {
        "runs": [stored.id for stored, _ in found],
        "comparisons": [one.to_json() for _, outcomes in found for one in outcomes],
    }


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

    def text(row: str, column: str) -> str:
        number = cells.get((row, column))
        if number is None:
            return table.words.get(row, {}).get(column, "")
        return number.text + notes.mark(number.note)

    lines = [f"{table.name.upper()}  {table.about}"]
    rows = {row: [text(row, column) for column in table.columns] for row in table.rows}
    heads = [_headed(column, table, cells) for column in table.columns]
    for start, end in _blocks(heads, rows):
        body = [(row, *line[start:end]) for row, line in rows.items()]
        right = range(1, end - start + 1)
        lines.append(output.table(("", *heads[start:end]), body, right=list(right)))
    counts = sorted({number.n for number in cells.values() if number.n is not None})
    if counts:
        lines.append(f"n: {', '.join(map(str, counts))}")
    return "\n".join([*lines, *notes.lines()])


def _headed(column: str, table: Table, cells: dict[tuple[str, str], Number]) -> str:
    """The column's name, with its unit where all its cells share one that it does not name."""
    found = {cells[row, column].unit for row in table.rows if (row, column) in cells}
    unit = found.pop() if len(found) == 1 else ""
    return column if not unit or f"({unit})" in column else f"{column} ({unit})"


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


def _comparisons(shelf: Shelf, found: Sequence[tuple[StoredRun, list[Outcome]]]) -> str:
    """Ours beside theirs, a block for each comparison."""
    from nephoscope.studies import writing

    if not found:
        return f"OURS\n{_INDENT}No run yet: `nephoscope study run {shelf.name}`."
    lines = ["OURS BESIDE THEIRS"]
    for stored, outcomes in found:
        lines.append(f"{_INDENT}run {stored.id}")
        for one in outcomes:
            lines += [
                "",
                _wrap(f"{one.mark.value.upper()}: {one.claim}", ""),
                _wrap(f"theirs  {writing.told_theirs(one)}", _INDENT, 10),
                _wrap(f"ours    {writing.told_ours(one)}", _INDENT, 10),
                _wrap(one.sentence),
                *(_wrap(f"of theirs: {note}") for note in one.figure.notes),
            ]
    return "\n".join(lines)


def _wrap(text: str, indent: str = _INDENT, hang: int | None = None) -> str:
    later = indent if hang is None else " " * hang
    return textwrap.fill(
        text, output.width(), initial_indent=indent, subsequent_indent=later, break_on_hyphens=False
    )
