"""Reads and checks the folder of each reference study."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from nephoscope.catalog import source_folder
from nephoscope.core.errors import UsageError
from nephoscope.core.reading import recordfile, textfile
from nephoscope.core.reading.sentences import unknown_name
from nephoscope.features.studies.definition.contents import Contents, ContentsEntry
from nephoscope.features.studies.definition.selectors import Cell
from nephoscope.features.studies.definition.study import (
    MissingTable,
    Part,
    PrintedTable,
    Study,
    Tables,
)
from nephoscope.measure import plans

COLUMNS = ("table", "row", "column", "value", "unit", "n", "note")


@dataclass(frozen=True, slots=True)
class Number:
    """One published number. text: as published, with a decimal point; n: None where not stated."""

    table: str
    row: str
    column: str
    text: str
    value: float
    unit: str
    n: int | None
    note: str

    @property
    def cell(self) -> Cell:
        """Row and column."""
        return self.row, self.column


@dataclass(frozen=True, slots=True)
class ReferenceStudy:
    """A study with its numbers, in the order of its text.

    definition: study.yaml. tables: those printed as tables. missing: those without numbers.
    contents: everything that the study lists or describes, with what answers it here.
    """

    name: str
    path: Path
    definition: Study
    tables: tuple[PrintedTable, ...]
    missing: tuple[MissingTable, ...]
    numbers: tuple[Number, ...]
    contents: tuple[ContentsEntry, ...]

    def number(self, table: str, cell: Cell) -> Number:
        """Returns the number in that cell; UsageError when the study published none there."""
        for number in self.numbers:
            if number.table == table and number.cell == cell:
                return number
        raise UsageError(
            f"{self.name}: {table} has no number in '{cell[0]}', '{cell[1]}'.",
            "Correct study.yaml or published.csv.",
        )

    def part(self, name: str) -> Part:
        """Returns the part of that name; UnknownName with the nearest if there is none."""
        for part in self.definition.parts:
            if part.name == name:
                return part
        known = [part.name for part in self.definition.parts]
        raise unknown_name(f"{self.name} has no part '{name}'", name, known, "It has")

    def plan_names(self, part: Part) -> tuple[str, ...]:
        """Returns the names of the runs of a part, of every scale."""
        return tuple(_run_name(self.name, part.name, scale) for scale in part.scales)


def folder() -> Path:
    """Returns the folder of the studies."""
    return source_folder("studies")


def names() -> list[str]:
    """Returns the names of the studies in alphabetical order."""
    return sorted(path.parent.name for path in folder().glob("*/study.yaml"))


def load_all() -> list[ReferenceStudy]:
    """Returns every study, oldest first."""
    return sorted(map(load, names()), key=lambda study: (study.definition.year, study.name))


@lru_cache(maxsize=16)
def load(name: str) -> ReferenceStudy:
    """Returns the study of that name; UnknownName with the nearest name if there is none."""
    known = names()
    if name not in known:
        raise unknown_name(f"There is no study '{name}'", name, known, "There are")
    return read(folder() / name)


def read(path: Path) -> ReferenceStudy:
    """Reads a study's folder. UsageError (file, line, column) for any mistake in its files."""
    definition = recordfile.load(path / "study.yaml", Study, "study")
    tables = recordfile.load(path / "tables.yaml", Tables, "study")
    numbers = read_numbers(path / "published.csv")
    contents = recordfile.load(path / "contents.yaml", Contents, "study").entries
    study = ReferenceStudy(
        path.name, path, definition, tables.tables, tables.missing, numbers, contents
    )
    for name in (name for entry in contents for name in entry.parts):
        study.part(name)
    return study


def plan_of(study: ReferenceStudy, part: Part, scale: str) -> plans.Plan:
    """Returns the plan of a part at a scale; UsageError for a part that does not exist here yet."""
    if part.agreements:
        raise UsageError(
            f"{study.name}, {part.name}: this part is computed, not run.",
            f"Use `nephoscope study show {study.name}`.",
        )
    if not part.plan:
        raise UsageError(f"{study.name}, {part.name}: not yet: {part.not_yet}.")
    changes = next(sets for name, sets in part.scales.items() if name == scale)
    run_name = _run_name(study.name, part.name, scale)
    return plans.load(study.path / part.plan, {"name": run_name, **changes})


def _run_name(study: str, part: str, scale: str) -> str:
    return f"{study}-{part}" + ("" if scale == "small" else f"-{scale}")


def read_numbers(path: Path) -> tuple[Number, ...]:
    """Reads the published numbers of a file. UsageError with file and line for any mistake."""
    rows = textfile.csv_rows(textfile.read(path, "study", UsageError), str(path))
    if tuple(next(rows, (1, []))[1]) != COLUMNS:
        raise UsageError(f"{path}:1: the columns must be {','.join(COLUMNS)}.")
    numbers: dict[tuple[str, Cell], Number] = {}
    for line, fields in rows:
        where = f"{path}:{line}"
        if len(fields) != len(COLUMNS):
            raise UsageError(f"{where}: {len(fields)} columns instead of {len(COLUMNS)}.")
        number = _number(fields, where)
        if (number.table, number.cell) in numbers:
            raise UsageError(
                f"{where}: {number.table} has '{number.row}', '{number.column}' twice."
            )
        numbers[number.table, number.cell] = number
    return tuple(numbers.values())


def _number(fields: list[str], where: str) -> Number:
    table, row, column, text, unit, n, note = fields
    try:
        value = float(text)
        count = int(n) if n else None
    except ValueError:
        value, count = math.nan, None
    if not math.isfinite(value):
        raise UsageError(f"{where}: value '{text}' or n '{n}' is not a plain number.")
    return Number(table, row, column, text, value, unit, count, note)
