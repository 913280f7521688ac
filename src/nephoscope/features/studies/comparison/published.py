"""Computes a figure of a study from its published numbers, with its published uncertainty."""

from __future__ import annotations

import math
from dataclasses import field

from nephoscope.core.records import dataclass
from nephoscope.features.studies.catalogue import ReferenceStudy
from nephoscope.features.studies.definition.selectors import Cell, Cells, PublishedFigure
from nephoscope.stats.statistics.means import Summary, fieller, summary

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class ReferenceFigure:
    """A published figure. value: None for an order; low, high: None where nothing gives them.

    n: as published. missing: a sentence about what the study does not give, '' if nothing.
    notes: inconsistencies of the numbers of which it is made. direction: 'more' or 'less' where
    the study gives no number; value is then beyond every number.
    """

    value: float | None
    source: str
    missing: str
    low: float | None = None
    high: float | None = None
    n: int | None = None
    order: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
    direction: str = ""


def compute_figure(study: ReferenceStudy, selector: PublishedFigure) -> ReferenceFigure:
    """Returns the selected figure; UsageError when a cell of it was not published."""
    table = selector.table
    numbers = [study.number(table, cell) for cell in selector.cells]
    notes = tuple(dict.fromkeys(number.note for number in numbers if number.note))
    if selector.order:
        missing = "The study gives an order, without n or interval."
        return ReferenceFigure(None, table, missing, order=selector.order, notes=notes)
    if selector.direction:
        beyond = math.inf if selector.direction == "more" else -math.inf
        missing = "The study gives a direction, without a number."
        return ReferenceFigure(beyond, table, missing, direction=selector.direction)
    bounds: tuple[float, float] | None = None
    if selector.cell is not None:
        number = study.number(table, selector.cell)
        value, n = number.value, number.n
        if selector.low is not None and selector.high is not None:
            ends = (study.number(table, cell).value for cell in (selector.low, selector.high))
            bounds = next(ends), next(ends)
    else:
        assert selector.numerator is not None
        assert selector.denominator is not None
        over = _side(study, table, selector.numerator, selector.numerator_spread)
        under = _side(study, table, selector.denominator, selector.denominator_spread)
        value, n = over.mean / under.mean, _repetitions(study, table, selector.numerator)
        bounds = fieller(under, over, CONFIDENCE) if over.n > 1 and under.n > 1 else None
    value, *ends_scaled = (
        selector.offset + selector.scale * number for number in (value, *(bounds or ()))
    )
    low, high = sorted(ends_scaled) if bounds else (None, None)
    return ReferenceFigure(value, table, _missing(n, low), low, high, n, notes=notes)


def _side(study: ReferenceStudy, table: str, cells: Cells, spread: Cell | None) -> Summary:
    """Mean, standard deviation and n of one side of a ratio; n is 0 where the study gives none.

    Several cells are repetitions of one condition; of one cell the study itself gives the spread.
    """
    numbers = [study.number(table, cell) for cell in cells]
    if len(numbers) > 1:
        return summary([number.value for number in numbers])
    if spread is None:
        return Summary(numbers[0].value, 0.0, 0)
    return Summary(numbers[0].value, study.number(table, spread).value, numbers[0].n or 0)


def _repetitions(study: ReferenceStudy, table: str, cells: Cells) -> int | None:
    """Repetitions of one side of a ratio: its cells, or the n published with its only cell."""
    return len(cells) if len(cells) > 1 else study.number(table, cells[0]).n


def _missing(n: int | None, low: float | None) -> str:
    missing = [word for word, absent in (("n", n is None), ("interval", low is None)) if absent]
    return f"The study gives no {' and no '.join(missing)}." if missing else ""
