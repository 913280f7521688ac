"""A figure of a study from its published numbers, with whatever uncertainty it published."""

from __future__ import annotations

from dataclasses import dataclass

from nephoscope.analysis.means import Summary, fieller
from nephoscope.studies.records import Cell, Theirs
from nephoscope.studies.shelf import Number, Shelf

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Figure:
    """What a study says. value: None for an order; low, high: None where nothing gives them.

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


def figure(shelf: Shelf, theirs: Theirs) -> Figure:
    """The figure that `theirs` describes; UsageError when a cell of it was not published."""
    cells = [shelf.number(theirs.table, cell) for cell in theirs.cells]
    notes = tuple(dict.fromkeys(cell.note for cell in cells if cell.note))
    if theirs.order:
        lacks = "They give an order, without n or interval."
        return Figure(None, None, None, None, theirs.order, theirs.table, lacks, notes)

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
        over, under = at(theirs.over), at(theirs.under)
        value, n = over.value / under.value, over.n
        bounds = _ratio_bounds(shelf, theirs, over, under)
    low, high = sorted(map(scaled, bounds)) if bounds else (None, None)
    return Figure(scaled(value), low, high, n, (), theirs.table, _lacks(n, low), notes)


def _ratio_bounds(
    shelf: Shelf, theirs: Theirs, over: Number, under: Number
) -> tuple[float, float] | None:
    """Fieller's interval, where the study gives means, standard deviations and n."""
    if theirs.over_spread is None or theirs.under_spread is None or not (over.n and under.n):
        return None
    above = Summary(over.value, shelf.number(theirs.table, theirs.over_spread).value, over.n)
    below = Summary(under.value, shelf.number(theirs.table, theirs.under_spread).value, under.n)
    return fieller(below, above, CONFIDENCE)


def _lacks(n: int | None, low: float | None) -> str:
    missing = [word for word, absent in (("n", n is None), ("interval", low is None)) if absent]
    return f"They give no {' and no '.join(missing)}." if missing else ""
