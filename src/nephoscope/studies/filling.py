"""Published tables with ours beside them, cell by cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nephoscope import units
from nephoscope.analysis import means, variation
from nephoscope.analysis.compare import estimate_json
from nephoscope.model import Estimate, RunResult
from nephoscope.studies import ours
from nephoscope.studies.picks import Ours, Pick
from nephoscope.studies.records import Part
from nephoscope.studies.shelf import Number, Shelf
from nephoscope.studies.shown import Line, Sheet
from nephoscope.studies.theirs import CONFIDENCE


@dataclass(frozen=True, slots=True)
class Filled:
    """One cell. theirs: the published numbers that it stands beside, repetitions if several.

    mean, low, high: of theirs, in their unit; the interval is None where nothing gives one. n:
    what it counts: their samples, or the sets. absent: why there is none of ours.
    """

    row: str
    column: str
    unit: str
    theirs: tuple[Number, ...]
    mean: float
    low: float | None
    high: float | None
    n: int | None
    ours: Estimate | None
    absent: str = ""

    def to_json(self) -> dict[str, Any]:
        """The object of study.json."""
        return {
            "row": self.row,
            "column": self.column,
            "unit": self.unit,
            "theirs": {
                "cells": [{"row": one.row, "column": one.column} for one in self.theirs],
                "values": [one.value for one in self.theirs],
                "mean": self.mean,
                "low": self.low,
                "high": self.high,
                "n": self.n,
            },
            "ours": estimate_json(self.ours) if self.ours else None,
            "absent": self.absent or None,
        }


@dataclass(frozen=True, slots=True)
class FilledSheet:
    """A table, its cells row by row."""

    part: str
    table: str
    title: str
    why: str
    cells: tuple[Filled, ...]

    def to_json(self) -> dict[str, Any]:
        """The object of study.json."""
        return {
            "part": self.part,
            "table": self.table,
            "title": self.title,
            "why": self.why,
            "cells": [cell.to_json() for cell in self.cells],
        }


def fill(shelf: Shelf, part: Part, result: RunResult) -> list[FilledSheet]:
    """Every sheet of the part, filled from a run of its plan."""
    return [_filled(shelf, part, sheet, result) for sheet in part.sheets]


def _filled(shelf: Shelf, part: Part, sheet: Sheet, result: RunResult) -> FilledSheet:
    cells = [
        _cell(shelf, sheet, (name, row), (head, column), result)
        for name, row in sheet.rows.items()
        for head, column in sheet.columns.items()
    ]
    return FilledSheet(part.name, sheet.table, sheet.title, sheet.why, tuple(cells))


def numbers_of(
    shelf: Shelf, sheet: Sheet, row: tuple[str, Line], column: tuple[str, Line]
) -> tuple[Number, ...]:
    """The published numbers of one cell; UsageError where one was not published."""
    rows, columns = row[1].of or (row[0],), column[1].of or (column[0],)
    return tuple(shelf.number(sheet.table, (one, other)) for one in rows for other in columns)


def picked(sheet: Sheet, row: Line, column: Line) -> tuple[Ours, Pick]:
    """Where ours of one cell is found: what the row says, then the column, then the sheet."""
    times = next((one.times for one in (row, column) if one.times is not None), sheet.ours.times)
    pick = Pick(
        benchmark=row.benchmark or column.benchmark,
        metric=row.metric or column.metric,
        target=row.target or column.target,
        factors={**column.factors, **row.factors},
        statistic=row.statistic or column.statistic,
    )
    return sheet.ours.model_copy(update={"times": times}), pick


def _cell(
    shelf: Shelf,
    sheet: Sheet,
    row: tuple[str, Line],
    column: tuple[str, Line],
    result: RunResult,
) -> Filled:
    numbers = numbers_of(shelf, sheet, row, column)
    chosen, pick = picked(sheet, row[1], column[1])
    unit = next((one.unit for one in (row[1], column[1]) if one.unit is not None), sheet.unit)
    mean, low, high, n = _theirs(shelf, sheet, numbers, pick.statistic or chosen.statistic)
    found: Estimate | None = None
    absent = row[1].why or column[1].why
    if not absent:
        try:
            found = ours.value(result, chosen, pick)
        except ours.Absent as error:
            absent = str(error)
    return Filled(row[0], column[0], unit, numbers, mean, low, high, n, found, absent)


def _theirs(
    shelf: Shelf, sheet: Sheet, numbers: Sequence[Number], statistic: str
) -> tuple[float, float | None, float | None, int | None]:
    """Their value with its interval: of sets over the sets, of one sample from its mean and s."""
    if len(numbers) > 1:
        values = [one.value for one in numbers]
        least = means.least_of(values)
        got = means.mean_t(values, unit="", confidence=CONFIDENCE, least=least)
        return got.value, got.low, got.high, got.n
    (number,) = numbers
    bounds: tuple[float, float] | None = None
    if sheet.summary is not None and number.n is not None and number.n > 1:
        mean, s = (shelf.number(sheet.table, (row, number.column)).value for row in sheet.summary)
        bounds = _of_sample(statistic, mean, s, number.n)
        if statistic == "cv" and bounds and number.unit == "%":
            bounds = bounds[0] * 100, bounds[1] * 100
    low, high = bounds or (None, None)
    return number.value, low, high, number.n


def _of_sample(statistic: str, mean: float, s: float, n: int) -> tuple[float, float] | None:
    """Interval of a statistic of one sample that is normal, from its mean and s."""
    if statistic == "mean":
        half = means.t_quantile(n - 1, CONFIDENCE) * s / math.sqrt(n)
        return mean - half, mean + half
    if statistic == "stdev":
        return variation.deviation_interval(s, n, CONFIDENCE)
    return variation.vangel(s / mean, n, CONFIDENCE) if statistic == "cv" else None


def told_theirs(cell: Filled) -> str:
    """Their value: '1,716 ms [1,715, 1,718], n 100'; of several sets their mean and each."""
    text = told(cell.mean, cell.low, cell.high, cell.unit)
    n = "n not given" if cell.n is None else f"n {cell.n}"
    if len(cell.theirs) == 1:
        return f"{text}, {n}"
    return f"{text}, {n} sets ({', '.join(one.text for one in cell.theirs)})"


def told_ours(cell: Filled) -> str:
    """Our value with interval and n, or why there is none."""
    if cell.ours is None:
        return f"none: {cell.absent}"
    found = cell.ours
    sets = " sets" if len(cell.theirs) > 1 else ""
    return f"{told(found.value, found.low, found.high, cell.unit)}, n {found.n}{sets}"


def told(value: float, low: float | None, high: float | None, unit: str) -> str:
    """'1.022 times [1.018, 1.027]'; '?' where an interval has no bound on a side."""
    digits = 4
    text = f"{units.format_number(value, digits)} {unit}".rstrip()
    if low is None and high is None:
        return f"{text}, no interval"
    bounds = ["?" if one is None else units.format_number(one, digits) for one in (low, high)]
    return f"{text} [{', '.join(bounds)}]"
