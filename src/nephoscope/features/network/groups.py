"""Groups of instance types whose networks cannot be told apart.

A group is a largest set of types of which no two differ: as in a compact letter display, a type
between two others may belong to both groups (Piepho 2004).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import combinations
from pathlib import Path

from nephoscope.core.errors import UsageError
from nephoscope.core.model import INTERNAL, Better, Estimate
from nephoscope.core.reading import textfile
from nephoscope.core.reading.numbers import NumberRange
from nephoscope.core.records import dataclass
from nephoscope.stats import compare
from nephoscope.stats.statistics import estimates
from nephoscope.stats.statistics.values import Refused

ROUND_TRIP, GOODPUT = "round trip", "goodput"

METRICS: Mapping[str, tuple[str, Better]] = {
    ROUND_TRIP: ("ns", Better.LOWER),
    GOODPUT: ("bits_per_s", Better.HIGHER),
}
"""Metric -> unit and direction."""

COLUMNS: Mapping[str, tuple[str, float]] = {
    "rtt_ns": (ROUND_TRIP, 1.0),
    "rtt_us": (ROUND_TRIP, 1e3),
    "rtt_ms": (ROUND_TRIP, 1e6),
    "bytes_per_s": (GOODPUT, 8.0),
    "bits_per_s": (GOODPUT, 1.0),
    "mbit_per_s": (GOODPUT, 1e6),
}
"""Column of a file -> metric, and the factor to its unit."""

TYPE = "instance_type"
"""Column of a file that names the instance type."""

_RANGE = NumberRange(0, 1e15, above=True)
_MOST_TYPES = 40
"""Types of one comparison: 780 pairs."""

Values = Mapping[str, Mapping[str, Sequence[float]]]
"""Metric -> instance type -> values."""


@dataclass(frozen=True, slots=True)
class TypeValues:
    """All values of one metric of an instance type, and their median."""

    instance_type: str
    metric: str
    median: Estimate
    values: tuple[float, ...] = field(metadata=INTERNAL)


@dataclass(frozen=True, slots=True)
class TypePair:
    """Two instance types compared in one metric. differ: whether they can be told apart."""

    metric: str
    first: str
    second: str
    differ: bool
    p_holm: float | None
    sentence: str


@dataclass(frozen=True, slots=True)
class NetworkGroups:
    """Instance types by similar network. groups: each a set of types that cannot be told apart.

    margin: relative difference that counts as none. points: number of all values, of which every
    one is in the charts.
    """

    groups: tuple[tuple[str, ...], ...]
    types: tuple[TypeValues, ...]
    pairs: tuple[TypePair, ...]
    points: int
    margin: float
    confidence: float
    sources: tuple[str, ...] = ()


def group(
    values: Values,
    *,
    margin: float = compare.MARGIN,
    confidence: float = 0.95,
    sources: Sequence[str] = (),
) -> NetworkGroups:
    """Groups instance types; p-values are corrected over all pairs and metrics (Holm).

    values: in order of measurement. Raises Refused below two types, and for two types without a
    common metric.
    """
    names = list(dict.fromkeys(name for by_type in values.values() for name in by_type))
    if not 2 <= len(names) <= _MOST_TYPES:
        raise Refused(
            f"{len(names)} instance types cannot be grouped; use 2 to {_MOST_TYPES} types."
        )
    metric_pairs = [
        (metric, first, second)
        for metric, by_type in values.items()
        for first, second in combinations(by_type, 2)
    ]
    for first, second in combinations(names, 2):
        if not any(first in by_type and second in by_type for by_type in values.values()):
            raise Refused(
                f"The types '{first}' and '{second}' have no metric in common; measure one metric "
                "of all types."
            )
    compared = [
        compare.independent(
            values[metric][first],
            values[metric][second],
            unit=METRICS[metric][0],
            better=METRICS[metric][1],
            margin=margin,
            confidence=confidence,
            names=(first, second),
        )
        for metric, first, second in metric_pairs
    ]
    pairs = [
        TypePair(
            *place,
            comparison.verdict.word in ("better", "worse"),
            comparison.p_holm,
            comparison.verdict.sentence,
        )
        for place, comparison in zip(
            metric_pairs, compare.over_report(compared, confidence=confidence), strict=True
        )
    ]
    apart = {frozenset((pair.first, pair.second)) for pair in pairs if pair.differ}
    alike = {
        name: {
            name_b for name_b in names if name_b != name and frozenset((name, name_b)) not in apart
        }
        for name in names
    }
    cliques = [
        tuple(sorted(clique, key=names.index))
        for clique in _cliques(set(), set(names), set(), alike)
    ]
    return NetworkGroups(
        tuple(sorted(cliques, key=lambda clique: list(map(names.index, clique)))),
        tuple(
            TypeValues(
                name,
                metric,
                estimates.median(own, unit=METRICS[metric][0], confidence=confidence),
                tuple(own),
            )
            for metric, by_type in values.items()
            for name, own in by_type.items()
        ),
        tuple(pairs),
        sum(len(own) for by_type in values.values() for own in by_type.values()),
        margin,
        confidence,
        tuple(sources),
    )


def _cliques(
    chosen: set[str], open_: set[str], done: set[str], alike: Mapping[str, set[str]]
) -> Iterator[set[str]]:
    """Yields the largest sets of types that are all alike (Bron and Kerbosch, with a pivot)."""
    if not open_ and not done:
        yield chosen
        return
    pivot = max(open_ | done, key=lambda name: len(alike[name] & open_))
    for name in sorted(open_ - alike[pivot]):
        yield from _cliques(chosen | {name}, open_ & alike[name], done & alike[name], alike)
        open_ = open_ - {name}
        done = done | {name}


def read(files: Iterable[Path]) -> Values:
    """Returns the values of CSV files with a column `instance_type` and columns of COLUMNS."""
    values: dict[str, dict[str, list[float]]] = {}
    for file in files:
        text = textfile.read(file, "list of measurements", UsageError, pipe=True)
        columns = (TYPE, *COLUMNS)
        for where, row in textfile.csv_records(text, str(file), columns, (TYPE,)):
            for column, cell in row.items():
                if column == TYPE or not cell:
                    continue
                metric, factor = COLUMNS[column]
                own = values.setdefault(metric, {}).setdefault(row[TYPE], [])
                own.append(_value(cell, where, column) * factor)
    if not values:
        raise UsageError("The files have no measurements.", f"Columns: {', '.join(COLUMNS)}.")
    return values


def _value(cell: str, where: str, column: str) -> float:
    try:
        return _RANGE.read(cell)
    except ValueError as error:
        raise UsageError(
            f"{where}: {column} '{cell[:40]}' {error}.",
            "Leave the cell empty where nothing was measured.",
        ) from None
