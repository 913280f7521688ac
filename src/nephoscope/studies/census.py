"""A published census of CPU models: the tables of a study as counts and speeds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nephoscope.census.files import whole_machines
from nephoscope.census.records import Count, Told
from nephoscope.errors import UsageError
from nephoscope.studies.counted import Counted, Relative
from nephoscope.studies.shelf import Number, Shelf, load_all

SUM_MARGIN = 0.5
"""How far shares in per cent may miss 100 for being rounded; more is told."""


@dataclass(frozen=True, slots=True)
class Published:
    """What a study published of a census."""

    counts: tuple[Count, ...]
    told: tuple[Told, ...]
    sources: tuple[str, ...]
    flags: tuple[str, ...]


def published(shelf: Shelf) -> Published:
    """The counts and speeds of a study. UsageError where it has none, naming those that do."""
    wanted = shelf.study.census
    if wanted is None:
        having = [other.name for other in load_all() if other.study.census is not None]
        raise UsageError(
            f"{shelf.name} counted no CPU models.", f"These did: {', '.join(having) or 'none'}."
        )
    counts = tuple(_counts(shelf, wanted.counted))
    told = tuple(one for table in wanted.speeds for one in _told(shelf, table))
    tables = [wanted.counted.table, *(table.table for table in wanted.speeds)]
    sources = tuple(f"{shelf.name}, {table}" for table in tables)
    return Published(counts, told, sources, tuple(_sums(shelf, wanted.counted)))


def _counts(shelf: Shelf, table: Counted) -> Iterable[Count]:
    cells = {number.cell: number for number in shelf.numbers if number.table == table.table}
    for row in dict.fromkeys(row for row, _ in cells):
        kind, _, model = row.rpartition(" ")
        share, clock = cells.get((row, table.share)), cells.get((row, table.clock))
        yield Count(
            kind,
            model,
            None if share is None else _machines(shelf, share),
            clock_hz=None if clock is None else clock.value * 1e9,
            source=f"{table.table}, {row}",
            notes=tuple(one.note for one in (clock, share) if one is not None and one.note),
        )


def _machines(shelf: Shelf, share: Number) -> int:
    where = f"{shelf.name}, {share.table}, {share.row}"
    if share.n is None:
        raise UsageError(f"{where}: the share has no n.", "Correct published.csv.")
    return whole_machines(share.value / 100, share.n, where)


def _told(shelf: Shelf, table: Relative) -> Iterable[Told]:
    for number in shelf.numbers:
        if number.table == table.table:
            yield Told(
                table.instance_type,
                number.column,
                number.row,
                number.value,
                source=f"{shelf.name}, {table.table}, as printed",
                note=number.note,
            )


def _sums(shelf: Shelf, table: Counted) -> Iterable[str]:
    """Types whose shares do not make up the whole."""
    sums: dict[str, float] = {}
    for number in shelf.numbers:
        if number.table == table.table and number.column == table.share:
            kind = number.row.rpartition(" ")[0]
            sums[kind] = sums.get(kind, 0.0) + number.value
    for kind, total in sums.items():
        if abs(total - 100) > SUM_MARGIN:
            yield f"{table.table}: the shares of {kind} sum to {total:g} %."
