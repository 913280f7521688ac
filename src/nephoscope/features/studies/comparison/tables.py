"""Fills published tables with the measured values, cell by cell."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nephoscope.core.model import Estimate, RunResult
from nephoscope.core.records import dataclass
from nephoscope.features.studies.catalogue import Number, ReferenceStudy
from nephoscope.features.studies.comparison import measured
from nephoscope.features.studies.comparison.published import CONFIDENCE
from nephoscope.features.studies.definition.layouts import TableLayout, TableLine
from nephoscope.features.studies.definition.selectors import MeasuredFigure, MetricSelection
from nephoscope.features.studies.definition.study import Part
from nephoscope.stats.statistics import means, variation


@dataclass(frozen=True, slots=True)
class Statistic:
    """A published value with its interval, where one follows; n: samples, or sets of them."""

    value: float
    low: float | None
    high: float | None
    n: int | None


@dataclass(frozen=True, slots=True)
class TableCell:
    """One cell. numbers: the published ones, repetitions if several; absent: why none is here."""

    row: str
    column: str
    unit: str
    numbers: tuple[Number, ...]
    published: Statistic
    measured: Estimate | None
    absent: str = ""


@dataclass(frozen=True, slots=True)
class FilledTable:
    """A table, its cells row by row."""

    part: str
    table: str
    title: str
    why: str
    cells: tuple[TableCell, ...]


def fill_tables(study: ReferenceStudy, part: Part, result: RunResult) -> list[FilledTable]:
    """Returns every table of the part, filled from a run of its plan."""
    return [
        FilledTable(
            part.name,
            table.table,
            table.title,
            table.why,
            tuple(
                _cell(study, table, row, column, result)
                for row in table.rows
                for column in table.columns
            ),
        )
        for table in part.tables
    ]


def selection_of(
    table: TableLayout, row: TableLine, column: TableLine
) -> tuple[MeasuredFigure, MetricSelection]:
    """Selects the metric of one cell: the row comes first, then the column, then the table."""
    scale = next((line.scale for line in (row, column) if line.scale is not None), None)
    selection = MetricSelection(
        benchmark=row.benchmark or column.benchmark,
        metric=row.metric or column.metric,
        target=row.target or column.target,
        factors={**column.factors, **row.factors},
        statistic=row.statistic or column.statistic,
    )
    figure = table.measured
    return (figure if scale is None else figure.model_copy(update={"scale": scale})), selection


def published_numbers(
    study: ReferenceStudy, table: TableLayout, row: str, column: str
) -> tuple[Number, ...]:
    """Returns the published numbers of one cell; UsageError where one was not published."""
    return tuple(
        study.number(table.table, (row_name, column_name))
        for row_name in table.rows[row].published or (row,)
        for column_name in table.columns[column].published or (column,)
    )


def _cell(
    study: ReferenceStudy, table: TableLayout, row: str, column: str, result: RunResult
) -> TableCell:
    lines = table.rows[row], table.columns[column]
    numbers = published_numbers(study, table, row, column)
    figure, selection = selection_of(table, *lines)
    statistic = selection.statistic or figure.statistic
    estimate: Estimate | None = None
    absent = lines[0].why or lines[1].why
    if not absent:
        try:
            estimate = measured.value(result, figure, selection)
        except measured.Absent as error:
            absent = str(error)
    unit = next((line.unit for line in lines if line.unit is not None), table.unit)
    published = _published(study, table, numbers, statistic)
    return TableCell(row, column, unit, numbers, published, estimate, absent)


def _published(
    study: ReferenceStudy, table: TableLayout, numbers: Sequence[Number], statistic: str
) -> Statistic:
    """Published value with its interval: over the sets, or from mean and s of one sample."""
    if len(numbers) > 1:
        values = [number.value for number in numbers]
        mean = means.mean_of_skewed(
            values, unit="", confidence=CONFIDENCE, least=means.least_of(values)
        )
        return Statistic(mean.value, mean.low, mean.high, mean.n)
    (number,) = numbers
    low: float | None = None
    high: float | None = None
    if table.summary is not None and number.n is not None and number.n > 1:
        mean_value, s = (
            study.number(table.table, (row, number.column)).value for row in table.summary
        )
        bounds = _bounds_of_sample(statistic, mean_value, s, number.n)
        percent = 100 if statistic == "cv" and number.unit == "%" else 1
        low, high = (end * percent for end in bounds) if bounds else (None, None)
    return Statistic(number.value, low, high, number.n)


def _bounds_of_sample(statistic: str, mean: float, s: float, n: int) -> tuple[float, float] | None:
    """Interval of a statistic of one normal sample, from its mean and s."""
    if statistic == "mean":
        half = means.t_quantile(n - 1, CONFIDENCE) * s / math.sqrt(n)
        return mean - half, mean + half
    if statistic == "stdev":
        return variation.deviation_interval(s, n, CONFIDENCE)
    return variation.vangel(s / mean, n, CONFIDENCE) if statistic == "cv" else None
