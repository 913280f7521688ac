"""Figures that cannot be true are left out: ranges, times, the order of percentiles, units."""

from __future__ import annotations

import re
from collections.abc import Iterable

from nephoscope.core.model import factors_key
from nephoscope.core.reading.numbers import ANY
from nephoscope.store.imports.rows import ImportedFigures, ImportedRow
from nephoscope.store.manifest import is_moment

_FROM_ZERO = frozenset({"ns", "bytes", "per_s", "bytes_per_s", "bits_per_s", "count"})
_TOLERANCE = 1e-9
_PERCENTILE = re.compile(r"(?P<stem>.*?)[._]p\(?(?P<rank>[0-9]+(?:[._][0-9]+)?)\)?(?:_ns)?")


def check(figures: ImportedFigures, *, from_zero: bool = True) -> None:
    """Moves figures that cannot be true to those that are left out.

    from_zero: whether its times, sizes, rates and counts cannot be negative.
    """
    good: list[ImportedRow] = []
    for row in figures.rows:
        problem = _problem_of(row, from_zero=from_zero)
        if problem:
            figures.left_out.append(f"{row.place}: {problem}")
        else:
            good.append(row)
    disordered = _disordered(good)
    for rows in disordered:
        values = ", ".join(f"{row.metric} = {row.value:g}" for row in rows)
        figures.left_out.append(f"{rows[0].place}: percentiles that do not ascend: {values:.200}")
    wrong = {id(row) for rows in disordered for row in rows}
    figures.rows = [row for row in good if id(row) not in wrong]


def _problem_of(row: ImportedRow, *, from_zero: bool) -> str:
    """Returns what makes a row no figure that can be stored; '' for nothing."""
    if row.at_s is not None and not is_moment(row.at_s):
        return "its time is no time of the calendar since 1970"
    try:
        ANY.read(row.figure)
    except ValueError as error:
        return f"{row.metric} {error}: {row.value:g}"
    if from_zero and row.figure < 0 and row.unit.unit in _FROM_ZERO:
        return f"{row.metric} is below 0: {row.value:g}"
    if row.unit.share and not -_TOLERANCE <= row.figure <= 1 + _TOLERANCE:
        return f"{row.metric} is a share, and cannot be {100 * row.figure:.4g} %"
    return ""


def _disordered(rows: Iterable[ImportedRow]) -> list[list[ImportedRow]]:
    """Returns the percentiles of each distribution in which a higher one has a lower value."""
    distributions: dict[tuple[str, ...], list[tuple[float, ImportedRow]]] = {}
    for row in rows:
        match = _PERCENTILE.fullmatch(row.metric)
        if match:
            key = (row.place, row.test, factors_key(row.factors), match["stem"])
            distributions.setdefault(key, []).append((_percent(match["rank"]), row))
    disordered = []
    for pairs in distributions.values():
        ordered = [row for _, row in sorted(pairs, key=lambda pair: pair[0])]
        values = [row.figure for row in ordered]
        if values != sorted(values):
            disordered.append(ordered)
    return disordered


def _percent(rank: str) -> float:
    """Returns the percent of a rank; 999 and 99_9 are 99.9, as names of metrics write it."""
    if rank.isdigit() and len(rank) > 2 and rank != "100":
        rank = f"{rank[:2]}.{rank[2:]}"
    return float(rank.replace("_", "."))


def with_one_unit(figures: ImportedFigures) -> None:
    """Leaves out figures whose metric has another unit earlier in the same test."""
    units: dict[tuple[str, str], str] = {}
    good: list[ImportedRow] = []
    for row in figures.rows:
        unit = units.setdefault((row.test, row.metric), row.unit.unit)
        if unit == row.unit.unit:
            good.append(row)
        else:
            figures.left_out.append(
                f"{row.place}: {row.metric} is in {row.unit.unit}, and earlier in {unit}"
            )
    figures.rows = good
