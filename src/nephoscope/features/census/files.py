"""Counts and speeds that somebody wrote down: the CSV files of `census --import`.

One header, one row for each fact. A row counts machines (`machines`, or `share` with `n`), or tells
a speed (`benchmark` and `speed`, relative to the slowest model of the type); every row names
`instance_type` and `model`. `zone`, `hour`, `clock_ghz`, `low`, `high`, `n` and `note` may stand
beside. The full description is docs/how-to/census.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from nephoscope.core.errors import UsageError
from nephoscope.core.reading import numbers, textfile
from nephoscope.core.records import dataclass
from nephoscope.features.census.records import MachineCount, Observations, StatedSpeed

NEEDED = ("instance_type", "model")
COLUMNS = (
    *NEEDED,
    "machines",
    "share",
    "n",
    "zone",
    "hour",
    "clock_ghz",
    "benchmark",
    "speed",
    "low",
    "high",
    "note",
)


def read(file: Path) -> Observations:
    """The counts and speeds of a CSV file. UsageError with file and line for whatever is wrong."""
    text = textfile.read(file, "list of counts", UsageError)
    counts: list[MachineCount] = []
    speeds: list[StatedSpeed] = []
    for where, cells in textfile.csv_records(text, str(file), COLUMNS, NEEDED):
        row = _FileRow(cells, where)
        if row.text("benchmark") or row.text("speed"):
            speeds.append(_stated_speed(row, file))
        else:
            counts.append(_count(row))
    if not counts and not speeds:
        raise UsageError(
            f"{file}: no rows of counts or speeds.",
            f"The first line must name columns: {', '.join(COLUMNS)}.",
        )
    return Observations(
        tuple(counts),
        stated=tuple(speeds),
        sources=(str(file),),
        flags=tuple(_sums(counts, file)),
    )


@dataclass(frozen=True, slots=True)
class _FileRow:
    cells: Mapping[str, str]
    where: str

    def text(self, name: str) -> str:
        """The cell; '' where it is empty or the column is not there."""
        return self.cells.get(name, "")

    def number(self, name: str, low: float, high: float, *, above: bool = False) -> float | None:
        """The cell as a number in [low, high] (above: in (low, high]); None where it is empty."""
        text = self.text(name)
        if not text:
            return None
        try:
            value = numbers.ANY.read(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            value = math.nan
        if not (low <= value <= high) or (above and value == low):
            raise UsageError(
                f"{self.where}: {name} '{text[:40]}' is not a number "
                f"{('above' if above else 'from')} {low:g} to {high:g}.",
                "Use a plain number; a share may be 0.4 or 40%.",
            )
        return value

    def whole(self, name: str, high: int) -> int | None:
        """The cell as a whole number from 0."""
        value = self.number(name, 0, high)
        if value is not None and value != int(value):
            raise UsageError(
                f"{self.where}: {name} '{self.text(name)}' is not a whole number.",
                "Use the number of machines.",
            )
        return None if value is None else int(value)

    def needed(self, name: str) -> str:
        """The cell; UsageError where it is empty."""
        if not self.text(name):
            raise UsageError(f"{self.where}: '{name}' is empty.", "It is required in such a row.")
        return self.text(name)


def _count(row: _FileRow) -> MachineCount:
    kind, model = row.needed("instance_type"), row.needed("model")
    hour = row.whole("hour", 23)
    clock = row.number("clock_ghz", 0, 1000, above=True)
    return MachineCount(
        kind,
        model,
        _machines(row),
        row.text("zone"),
        hour,
        None if clock is None else clock * 1e9,
        row.where,
        (row.text("note"),) if row.text("note") else (),
    )


def _machines(row: _FileRow) -> int | None:
    machines = row.whole("machines", 10**9)
    share, n = row.number("share", 0, 1), row.whole("n", 10**9)
    if machines is not None:
        if share is not None:
            raise UsageError(
                f"{row.where}: machines and share exclude each other.", "Leave one of them empty."
            )
        return machines
    if share is None:
        if row.text("clock_ghz"):
            return None  # a model that a source names and does not count
        raise UsageError(
            f"{row.where}: the row has neither counts nor speeds.",
            "Add machines, or share and n, or benchmark and speed.",
        )
    if n is None:
        raise UsageError(
            f"{row.where}: share needs n.",
            "Add n, the number of machines that the share refers to.",
        )
    return whole_machines(share, n, row.where)


def whole_machines(share: float, n: int, where: str) -> int:
    """Returns how many of n machines a printed share is. UsageError when no whole number fits
    it."""
    count = round(share * n)
    # A share is printed to a whole per cent or better.
    if abs(share - count / n) > 0.005 + 1e-9:
        raise UsageError(
            f"{where}: {100 * share:g} % of {n} machines is {share * n:g}, not a whole number.",
            "Check share and n.",
        )
    return count


def _stated_speed(row: _FileRow, file: Path) -> StatedSpeed:
    kind, model = row.needed("instance_type"), row.needed("model")
    benchmark = row.needed("benchmark")
    row.needed("speed")
    speed = row.number("speed", 0, 1e9, above=True)
    assert speed is not None
    low, high = row.number("low", 0, 1e9, above=True), row.number("high", 0, 1e9, above=True)
    if (low is None) != (high is None) or (low is not None and not low <= speed <= (high or 0)):
        raise UsageError(
            f"{row.where}: low, speed and high do not ascend.", "Use low <= speed <= high."
        )
    n = row.whole("n", 10**9) or 0
    return StatedSpeed(kind, model, benchmark, speed, low, high, n, str(file), row.text("note"))


def _sums(counts: list[MachineCount], file: Path) -> list[str]:
    """Returns what does not fit together: a model that stands twice in one place."""
    twice: dict[tuple[str, str, str, int | None], list[str]] = {}
    for count in counts:
        key = (count.instance_type, count.model, count.zone, count.hour)
        twice.setdefault(key, []).append(count.source.rpartition(":")[2])
    return [
        (f"{file}: lines {', '.join(places)} all count {model} of {kind}; their counts were added.")
        for (kind, model, _, _), places in twice.items()
        if len(places) > 1
    ]
