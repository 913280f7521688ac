"""Benchmark scores of Spare Cores: the SQLite database of its package `sparecores-data`.

Of its tables, `benchmark` names what was measured and `benchmark_score` has one value for each
server and configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from nephoscope.core import limits
from nephoscope.core.model import Better
from nephoscope.core.reading import jsontext
from nephoscope.store.imports.rows import ImportedFigures, ImportedRow, meets, number
from nephoscope.store.imports.source import Source
from nephoscope.store.imports.units import Unit, unit_of

if TYPE_CHECKING:
    import sqlite3

_STEPS = 1_000
_MAX_CALLS = 2_000_000
"""The database is asked to stop after 2 thousand million steps: no honest file takes so many."""

_MISSING = (
    "Spare Cores publishes one score for each server and configuration: repetitions, their order "
    "and their spread are not in the file.",
)


def read(source: Source, conditions: Mapping[str, str]) -> ImportedFigures:
    """Returns the scores that meet all conditions. ValueError for what is no such database."""
    # Some builds of Python lack it, and only this reading needs it.
    import sqlite3

    uri = source.path.absolute().as_uri()
    calls = iter(range(_MAX_CALLS))
    try:
        with closing(sqlite3.connect(f"{uri}?mode=ro&immutable=1", uri=True)) as database:
            database.execute("PRAGMA trusted_schema = OFF")
            database.set_progress_handler(lambda: next(calls, None) is None, _STEPS)
            rows = list(_rows(database, conditions))
    except sqlite3.Error as error:
        raise ValueError(f"its scores cannot be read ({error})") from error
    return ImportedFigures("Spare Cores", rows, list(_MISSING))


def _rows(database: sqlite3.Connection, conditions: Mapping[str, str]) -> Iterator[ImportedRow]:
    columns = {row[1] for row in database.execute("PRAGMA table_info(benchmark_score)")}
    version = "s.framework_version" if "framework_version" in columns else "NULL"
    scores = database.execute(
        "SELECT b.framework, s.benchmark_id, b.unit, b.higher_is_better, s.vendor_id, s.server_id,"
        f" s.config, s.score, s.observed_at, {version} FROM benchmark_score s"
        " JOIN benchmark b ON b.benchmark_id = s.benchmark_id"
        " WHERE s.score IS NOT NULL AND lower(s.status) = 'active' ORDER BY s.observed_at"
    )
    count = 0
    for framework, benchmark, unit, higher, vendor, server, config, score, at, program in scores:
        factors = {"vendor": str(vendor), "server": str(server), **_configuration(config)}
        if program:
            factors["version"] = str(program)
        known = unit_of(str(unit or ""))
        better = known.better if higher is None else Better.HIGHER if higher else Better.LOWER
        row = ImportedRow(
            place=f"Score of {vendor} {server}",
            test=str(framework),
            metric=str(benchmark),
            value=number(score, "score"),
            unit=Unit(known.unit, known.factor, better),
            factors=factors,
            headline=True,
            at_s=_time(at),
        )
        if meets(row, conditions):
            count += 1
            yield row
        if count > limits.IMPORT_SCORES:
            raise ValueError(
                f"it has more than {limits.IMPORT_SCORES:,} scores; select some, such as with "
                "--where vendor=aws --where metric=bogomips"
            )


def _configuration(text: Any) -> dict[str, str]:
    values = jsontext.parse(str(text)) if text else {}
    if not isinstance(values, dict):
        raise ValueError("a configuration is no JSON object")
    return {str(key): str(value) for key, value in sorted(values.items())}


def _time(text: Any) -> float | None:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
