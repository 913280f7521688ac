"""A figure of a study from its published numbers, with whatever uncertainty it published."""

from __future__ import annotations

import math
from dataclasses import dataclass

from nephoscope.analysis.means import Summary, fieller, summary
from nephoscope.studies.picks import Cell, Cells, Theirs
from nephoscope.studies.shelf import Number, Shelf

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Figure:
    """What a study says. value: None for an order; low, high: None where nothing gives them.

    says: 'more' or 'less' where it gives a direction only; value is then beyond every number.
    n: as published. lacks: what a reader has to know that the study did not give, '' if nothing.
    notes: what was found inconsistent in the numbers that it is made of.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int | None
    order: tuple[str, ...]
    source: str
    lacks: str
    notes: tuple[str, ...]
    says: str = ""


def figure(shelf: Shelf, theirs: Theirs) -> Figure:
    """The figure that `theirs` describes; UsageError when a cell of it was not published."""
    cells = [shelf.number(theirs.table, cell) for cell in theirs.cells]
    notes = tuple(dict.fromkeys(cell.note for cell in cells if cell.note))
    if theirs.order:
        lacks = "They give an order, without n or interval."
        return Figure(None, None, None, None, theirs.order, theirs.table, lacks, notes)

    if theirs.says:
        beyond = math.inf if theirs.says == "more" else -math.inf
        lacks = "They give a direction, without a number."
        return Figure(beyond, None, None, None, (), theirs.table, lacks, (), theirs.says)

    def at(cell: Cell) -> Number:
        return shelf.number(theirs.table, cell)

    def scaled(value: float) -> float:
        return theirs.plus + theirs.times * value

    bounds: tuple[float, float] | None = None
    if theirs.cell is not None:
        number = at(theirs.cell)
        value, n = number.value, number.n
        if theirs.low is not None and theirs.high is not None:
            bounds = at(theirs.low).value, at(theirs.high).value
    else:
        assert theirs.over is not None
        assert theirs.under is not None
        over = _side(shelf, theirs.table, theirs.over, theirs.over_spread)
        under = _side(shelf, theirs.table, theirs.under, theirs.under_spread)
        value, n = over.mean / under.mean, _count(shelf, theirs)
        bounds = fieller(under, over, CONFIDENCE) if over.n > 1 and under.n > 1 else None
    low, high = sorted(map(scaled, bounds)) if bounds else (None, None)
    return Figure(scaled(value), low, high, n, (), theirs.table, _lacks(n, low), notes)


def _side(shelf: Shelf, table: str, cells: Cells, spread: Cell | None) -> Summary:
    """Mean, standard deviation and n of one side of a ratio; n is 0 where the study gave none.

    Several cells are repetitions of one condition; of one cell the study itself gives the spread.
    """
    found = [shelf.number(table, cell) for cell in cells]
    if len(found) > 1:
        return summary([number.value for number in found])
    if spread is None:
        return Summary(found[0].value, 0.0, 0)
    return Summary(found[0].value, shelf.number(table, spread).value, found[0].n or 0)


def _count(shelf: Shelf, theirs: Theirs) -> int | None:
    """How many repetitions stand behind a ratio: the cells of a side, or the published n."""
    assert theirs.over is not None
    if len(theirs.over) > 1:
        return len(theirs.over)
    return shelf.number(theirs.table, theirs.over[0]).n


def _lacks(n: int | None, low: float | None) -> str:
    missing = [word for word, absent in (("n", n is None), ("interval", low is None)) if absent]
    return f"They give no {' and no '.join(missing)}." if missing else ""
