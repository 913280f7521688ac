"""Reads a published census of CPU models: the tables of a study as counts and speeds."""

from __future__ import annotations

from collections.abc import Iterable

from nephoscope.core.errors import UsageError
from nephoscope.core.reading.sentences import choices
from nephoscope.features.census.files import whole_machines
from nephoscope.features.census.records import MachineCount, Observations, StatedSpeed
from nephoscope.features.studies.catalogue import Number, ReferenceStudy, load_all
from nephoscope.features.studies.definition.layouts import CountedModels, RelativeSpeeds

SUM_MARGIN = 0.5
"""How far shares in per cent may differ from 100 by rounding; beyond, a flag says so."""


def published(study: ReferenceStudy) -> Observations:
    """Returns the counts and speeds of a study. UsageError where it has none."""
    layout = study.definition.census
    if layout is None:
        with_census = [study.name for study in load_all() if study.definition.census is not None]
        raise UsageError(
            f"{study.name} counted no CPU models.",
            choices("These did", with_census, "No study here did; use --import FILE.csv."),
        )
    counts = tuple(_counts(study, layout.counted))
    speeds = tuple(speed for table in layout.speeds for speed in _speeds(study, table))
    tables = [layout.counted.table, *(table.table for table in layout.speeds)]
    sources = tuple(f"{study.name}, {table}" for table in tables)
    flags = tuple(_sums(study, layout.counted))
    return Observations(counts, stated=speeds, sources=sources, flags=flags)


def _counts(study: ReferenceStudy, table: CountedModels) -> Iterable[MachineCount]:
    cells = {number.cell: number for number in study.numbers if number.table == table.table}
    for row in dict.fromkeys(row for row, _ in cells):
        kind, _, model = row.rpartition(" ")
        share, clock = cells.get((row, table.share)), cells.get((row, table.clock))
        yield MachineCount(
            kind,
            model,
            None if share is None else _machines(study, share),
            clock_hz=None if clock is None else clock.value * 1e9,
            source=f"{table.table}, {row}",
            notes=tuple(
                number.note for number in (clock, share) if number is not None and number.note
            ),
        )


def _machines(study: ReferenceStudy, share: Number) -> int:
    where = f"{study.name}, {share.table}, {share.row}"
    if share.n is None:
        raise UsageError(f"{where}: the share has no n.", "Correct published.csv.")
    return whole_machines(share.value / 100, share.n, where)


def _speeds(study: ReferenceStudy, table: RelativeSpeeds) -> Iterable[StatedSpeed]:
    for number in study.numbers:
        if number.table == table.table:
            yield StatedSpeed(
                table.instance_type,
                number.column,
                number.row,
                number.value,
                source=f"{study.name}, {table.table}, as printed",
                note=number.note,
            )


def _sums(study: ReferenceStudy, table: CountedModels) -> Iterable[str]:
    """Types whose shares do not make up the whole."""
    sums: dict[str, float] = {}
    for number in study.numbers:
        if number.table == table.table and number.column == table.share:
            kind = number.row.rpartition(" ")[0]
            sums[kind] = sums.get(kind, 0.0) + number.value
    for kind, total in sums.items():
        if abs(total - 100) > SUM_MARGIN:
            yield f"{table.table}: the shares of {kind} sum to {total:g} %."
