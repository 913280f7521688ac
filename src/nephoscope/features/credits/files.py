"""Series of rates in a CSV file: a time, a rate, and where it is known how long there was load."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

import numpy as np

from nephoscope.core import limits
from nephoscope.core.errors import UsageError
from nephoscope.core.reading import numbers, textfile
from nephoscope.core.reading.sentences import listed
from nephoscope.core.records import dataclass
from nephoscope.store.imports.moments import moment_s

TIMES: Mapping[str, float] = {
    "time": 1.0,
    "timestamp": 1.0,
    "datetime": 1.0,
    "date": 1.0,
    "at": 1.0,
    "time_ns": 1e-9,
    "at_ns": 1e-9,
    "time_ms": 1e-3,
    "at_s": 1.0,
    "time_s": 1.0,
    "elapsed_s": 1.0,
    "minute": 60.0,
    "minutes": 60.0,
    "hour": 3600.0,
    "hours": 3600.0,
    "second": 1.0,
    "seconds": 1.0,
    "t": 1.0,
}
"""Columns of the time, the first that there is, and how many seconds a number of it is."""
_VALUES = ("rate", "value", "goodput", "throughput", "operations_per_s", "bytes_per_s", "per_s")
_BUSY = ("busy", "busy_s", "seconds")
"""Columns of the time with load in the interval of a row, as a share or in seconds."""
_MISSING = frozenset({"", "nan", "null", "none", "na", "n/a", "-"})
_MOST_SERIES = 1000


@dataclass(slots=True)
class FileSeries:
    """A series of a file. busy: share of each interval with load, where the file has it."""

    name: str
    at_s: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def shares(self) -> Sequence[float] | None:
        """Returns the busy time as a share of the usual distance of rows; None without it."""
        if len(self.busy) < 2 or len(self.busy) != len(self.rates):
            return None
        usual = float(np.median(np.diff(self.at_s)))
        busy = np.asarray(self.busy)
        # Seconds of a minute may be sixty and some: what was begun was ended.
        shares = busy if busy.max() <= 1 else busy / usual if usual > 0 else busy
        return [float(each) for each in np.clip(shares, 0, 1)] if shares.max() <= 1.2 else None


@dataclass(frozen=True, slots=True)
class _Columns:
    time: str
    rate: str
    busy: str
    names: tuple[str, ...]


def read(file: Path) -> tuple[list[FileSeries], list[str]]:
    """Returns the series of a file, and notes on what was not used.

    Columns of text name the series that a row belongs to. Raises UsageError with file and line.
    """
    text = textfile.read(file, "series", UsageError, pipe=True, largest=limits.IMPORT_BYTES)
    head = _head(text)
    rows = list(textfile.csv_records(text, str(file), head))
    if not rows:
        raise UsageError(f"{file}: there are no rows.", "Write a time and a rate in each.")
    columns = _columns(head, [row for _, row in rows], str(file))
    match: dict[str, FileSeries] = {}
    for where, row in rows:
        name = " ".join(row[each] for each in columns.names if row[each])
        series = match.setdefault(name, FileSeries(name))
        if len(match) > _MOST_SERIES:
            raise UsageError(f"{file}: more than {_MOST_SERIES} series.", "Split the file.")
        _add(series, row, columns, where)
    unused = [
        name
        for name in head
        if name not in (columns.time, columns.rate, columns.busy, *columns.names)
    ]
    notes = [f"Columns that were not used: {listed(unused, 8)}."] if unused else []
    return list(match.values()), notes


def _head(text: str) -> list[str]:
    lines = (line for line in text.removeprefix("\ufeff").splitlines() if line.strip())
    head = next((line for line in lines if not line.startswith("#")), "")
    mark = next((each for each in (",", ";", "\t") if each in head), ",")
    return [name.strip().strip('"') for name in head.split(mark)]


def _columns(head: Sequence[str], rows: Sequence[Mapping[str, str]], file: str) -> _Columns:
    by_name = {name.lower(): name for name in head}
    time = next((by_name[each] for each in TIMES if each in by_name), "")
    if not time:
        raise UsageError(
            f"{file}:1: no column of a time among {listed(head, 8)}.",
            "Name one `time` (seconds or ISO 8601), and one `rate`.",
        )
    text = tuple(
        name
        for name in head
        if name != time and any(not _is_number(row[name]) for row in rows[:1000])
    )
    numbers = [name for name in head if name not in (time, *text)]
    rate = next((by_name[each] for each in _VALUES if by_name.get(each) in numbers), "")
    busy = next((by_name[each] for each in _BUSY if by_name.get(each) in numbers), "")
    rest = [name for name in numbers if name != busy]
    if not rate and len(rest) == 1:
        (rate,) = rest
    if not rate:
        wrong = next((by_name[each] for each in _VALUES if by_name.get(each) in text), "")
        if wrong:
            at, row = next(
                (at, row) for at, row in enumerate(rows, start=2) if not _is_number(row[wrong])
            )
            raise UsageError(
                f"{file}:{at}: '{row[wrong][:40]}' in the column {wrong} is no number.",
                "Leave the cell of a missing value empty.",
            )
        raise UsageError(
            f"{file}:1: no column of a rate among {listed(head, 8)}.", "Name one `rate`."
        )
    return _Columns(time, rate, busy, text)


def _is_number(text: str) -> bool:
    if text.lower() in _MISSING:
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True


def _add(series: FileSeries, row: Mapping[str, str], columns: _Columns, where: str) -> None:
    at_s = _seconds(row[columns.time], TIMES[columns.time.lower()], where)
    text = row[columns.rate]
    if text.lower() in _MISSING:
        series.left_out["without a rate"] += 1
        return
    rate = _from_zero(text, where, columns.rate)
    if series.at_s and at_s == series.at_s[-1] and rate == series.rates[-1]:
        series.left_out["twice in the file"] += 1
        return
    if series.at_s and at_s <= series.at_s[-1]:
        of_series = f" of {series.name}" if series.name else ""
        raise UsageError(
            f"{where}: the time {row[columns.time][:40]}{of_series} is not later than the one "
            "above.",
            "Sort the file by time, and name several series in a column of their own.",
        )
    series.at_s.append(at_s)
    series.rates.append(rate)
    if columns.busy and row[columns.busy].lower() not in _MISSING:
        series.busy.append(_from_zero(row[columns.busy], where, columns.busy))


def _from_zero(text: str, where: str, column: str) -> float:
    try:
        return numbers.FROM_ZERO.read(text)
    except ValueError as error:
        raise UsageError(
            f"{where}: {column} '{text[:30]}' {error}.", "Leave a missing value empty."
        ) from None


def _seconds(text: str, scale: float, where: str) -> float:
    try:
        value: float | None = numbers.MOMENT_S.read(str(numbers.ANY.read(text) * scale))
    except ValueError:
        value = moment_s(text) if text else None
    if value is None or not math.isfinite(value):
        raise UsageError(
            f"{where}: '{text[:40]}' is no time.", "Write seconds, or 2026-11-27T12:00:00Z."
        )
    return value
