"""Tables by columns: each column has its heading beside the value that it shows of a record.

The type of a value decides how it reads (`cell`): an estimate with the unit of its metric, a number
with the unit of the column, text on one line, '–' for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from nephoscope.core import units
from nephoscope.core.model import Estimate
from nephoscope.core.reading.printable import printable
from nephoscope.report import wording
from nephoscope.report.blocks import Cell, Column, Linked, Strip, Table

Record = TypeVar("Record")

MISSING = "–"
"""Cell of a value that does not exist."""


def cell(value: object, unit: str = "", digits: int = 3, missing: str = MISSING) -> Cell:
    """Returns a value as the text of a cell; unit: that of a plain number, as in `core.units`."""
    match value:
        case None:
            return missing
        case Strip() | Linked():
            return value
        case Estimate():
            return wording.value_text(value)
        case int() | float() if unit:
            return units.format_value(value, unit, digits)
        case bool():
            return "yes" if value else "no"
        case _:
            return str(value)


def table(
    records: Iterable[Record],
    *columns: Column[Record],
    caption: str = "",
    collapsed: bool = False,
    grouped: int = 0,
    headings: Mapping[int, Sequence[str]] | None = None,
) -> Table:
    """Returns the columns of some records, a row for each.

    grouped: so many first cells are empty where they repeat those of the row above.
    headings: rows of a name alone, above the record of this index.
    """
    rows = [tuple(column.cell(record) for column in columns) for record in records]
    groups = [row[:grouped] for row in rows]
    for place, (above, group) in enumerate(pairwise(groups), start=1):
        if above == group:
            rows[place] = (*("" for _ in group), *rows[place][grouped:])
    empty = ("",) * (len(columns) - 1)
    for place in sorted(headings or {}, reverse=True):
        rows[place:place] = [(_one_line(heading), *empty) for heading in (headings or {})[place]]
    return Table(columns, tuple(rows), caption, collapsed)


def fact_table(rows: Iterable[tuple[str, str]], *, aligned: bool = True) -> Table:
    """Returns names and values as a list of facts; aligned: the values at the right."""
    return table(rows, text("", lambda row: row[0]), Column("", lambda row: row[1], aligned))


def text(
    title: str,
    value: Callable[[Record], object],
    *,
    missing: str = "",
    roomy: bool = False,
    width: float = 0,
) -> Column[Record]:
    """Returns a column of text on one line, aligned left."""

    def show(record: Record) -> Cell:
        content = cell(value(record), missing=missing)
        return wording.clean(content) if isinstance(content, str) else content

    return Column(title, show, False, roomy, width)


def label(title: str, value: Callable[[Record], str]) -> Column[Record]:
    """Returns a column of names on one line, which keep their indent."""
    return Column(title, lambda record: _one_line(value(record)))


def _one_line(text: str) -> str:
    """Returns a name without control characters, its blanks as they are."""
    return printable(text).replace("\n", " ").replace("\t", " ")


def number(
    title: str,
    value: Callable[[Record], object],
    unit: str = "",
    digits: int = 3,
    *,
    missing: str = MISSING,
    roomy: bool = False,
    width: float = 0,
) -> Column[Record]:
    """Returns a column of numbers, of estimates without their intervals, or of their texts."""
    return Column(
        title, lambda record: cell(value(record), unit, digits, missing), True, roomy, width
    )


def count(title: str, value: Callable[[Record], int]) -> Column[Record]:
    """Returns a column of counts with separators of thousands."""
    return number(title, lambda record: f"{value(record):,}")


def interval(
    title: str,
    value: Callable[[Record], Estimate | None],
    *,
    missing: str = "",
    widths: Sequence[float] = (0, 0),
    show: Callable[[Estimate], str] = wording.interval_text,
) -> tuple[Column[Record], Column[Record]]:
    """Returns the columns of an estimate and of its interval; missing: interval of nothing."""

    def ends(record: Record) -> str:
        estimate = value(record)
        return missing if estimate is None else show(estimate)

    return (
        number(title, value, width=widths[0]),
        number("interval", ends, width=widths[1]),
    )


def estimate(
    title: str,
    value: Callable[[Record], Estimate | None],
    *,
    missing: str = "",
    widths: Sequence[float] = (0, 0, 0),
) -> tuple[Column[Record], ...]:
    """Returns the columns of an estimate, of its interval and of n."""

    def n(record: Record) -> int | None:
        estimate = value(record)
        return None if estimate is None else estimate.n

    # n has a column of its own.
    columns = interval(
        title,
        value,
        missing=missing,
        widths=widths[:2],
        show=lambda e: wording.estimate_cells(e)[1],
    )
    return (*columns, number("n", n, width=widths[2]))


def estimates_table(pairs: Iterable[tuple[str, Estimate]], title: str, caption: str = "") -> Table:
    """Returns names and their estimates; title: of the names."""
    return table(
        pairs,
        text(title, lambda pair: pair[0]),
        *estimate("value", lambda pair: pair[1]),
        caption=caption,
    )


def ratio(
    title: str,
    value: Callable[[Record], Estimate | None],
    n: Callable[[Record], int] | None = None,
) -> tuple[Column[Record], ...]:
    """Returns the columns of a ratio as a plain number; n: the count of a ratio that is missing."""

    def plain(record: Record) -> Estimate | None:
        known = value(record)
        return None if known is None else wording.plain(known)

    *columns, counts = estimate(title, plain, missing="none")
    return (*columns, number("n", n) if n is not None else counts)


def spread(
    titles: Iterable[str],
    values: Callable[[Record], Sequence[Any]],
    unit: str = "",
    *,
    numeric: bool = True,
) -> tuple[Column[Record], ...]:
    """Returns columns whose headings are data: one for each place of a sequence."""

    def at(place: int) -> Callable[[Record], Cell]:
        return lambda record: cell(values(record)[place], unit)

    return tuple(Column(title, at(place), numeric) for place, title in enumerate(titles))
