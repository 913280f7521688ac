"""Figures of another tool as its file states them, and what is left out of them."""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from nephoscope.core.model import Better, factors_key
from nephoscope.core.reading.jsonstream import Repeated
from nephoscope.core.records import dataclass
from nephoscope.stats.statistics import histograms
from nephoscope.store.imports.hdr import HdrHistogram, HdrPrecision, added
from nephoscope.store.imports.units import Unit

NS = Unit("ns", 1.0, Better.LOWER)
US = Unit("ns", 1e3, Better.LOWER)
MS = Unit("ns", 1e6, Better.LOWER)
SECONDS = Unit("ns", 1e9, Better.LOWER)
PER_S = Unit("per_s", 1.0, Better.HIGHER)
BITS_PER_S = Unit("bits_per_s", 1.0, Better.HIGHER)
BYTES_PER_S = Unit("bytes_per_s", 1.0, Better.HIGHER)
COUNT = Unit("count", 1.0, Better.NONE)
FAILURES = Unit("count", 1.0, Better.LOWER)
PLAIN = Unit("none", 1.0, Better.NONE)


class Merge(enum.Enum):
    """How the figures of parallel parts of one workload make the figure of all of it."""

    SUM = "sum"
    MAXIMUM = "maximum"
    MINIMUM = "minimum"
    WEIGHTED_MEAN = "weighted mean"
    HISTOGRAM = "histogram"
    """Counts of equal values are added."""
    NONE = "none"
    """It cannot be told from the parts, as for percentiles."""


@dataclass(frozen=True, slots=True)
class ImportedHistogram:
    """How often each value was seen, in the unit of its row.

    precision: that of HdrHistogram's buckets, whose highest values the values are; None for single
    values or buckets of their own. factor: of HdrHistogram's whole numbers into the unit.
    """

    counts: Mapping[float, int]
    precision: HdrPrecision | None = None
    factor: float = 1.0

    @property
    def total(self) -> int:
        """Returns the number of values."""
        return sum(self.counts.values())

    @classmethod
    def added(cls, histograms: Sequence[ImportedHistogram]) -> ImportedHistogram:
        """Returns the sum; of several precisions, at the lowest."""
        factor = histograms[0].factor
        precisions = [histogram.precision for histogram in histograms]
        known = [precision for precision in precisions if precision is not None]
        if len(known) == len(precisions):
            whole = added(
                HdrHistogram(
                    precision,
                    {round(value / factor): n for value, n in histogram.counts.items()},
                )
                for precision, histogram in zip(known, histograms, strict=True)
            )
            counts = {value * factor: count for value, count in whole.counts.items()}
            return cls(counts, whole.precision, factor)
        sums: Counter[float] = Counter()
        for histogram in histograms:
            sums.update(histogram.counts)
        return cls(sums)


_SUMMED = frozenset({"per_s", "bytes_per_s", "bits_per_s", "count"})


@dataclass(frozen=True, slots=True)
class ImportedRow:
    """One figure of another tool.

    place: where it stands, for sentences. value: in the tool's unit. headline: whether it is a main
    figure of its test. at_s: seconds since 1970; None where the file does not state a time. run: id
    of the run that measured it; '' where there is none. merge: of parallel parts; by default rates
    and counts are summed. weight: of a weighted mean; 0 where it is unknown. identity: the same for
    copies of one figure; '' where the file has no such thing. histogram: of a distribution, whose
    largest value is `value`.
    """

    place: str
    test: str
    metric: str
    value: float
    unit: Unit
    factors: Mapping[str, str] = field(default_factory=dict)
    headline: bool = False
    at_s: float | None = None
    run: str = ""
    merge: Merge | None = None
    weight: float = 0.0
    identity: str = ""
    histogram: ImportedHistogram | None = None

    @property
    def figure(self) -> float:
        """Its value in our unit."""
        return self.value * self.unit.factor

    @property
    def group(self) -> tuple[str, str, str, str]:
        """What its repetitions have in common."""
        return (self.test, self.metric, self.unit.unit, factors_key(self.factors))

    @property
    def merging(self) -> Merge:
        """How parallel parts are merged."""
        if self.histogram is not None:
            return Merge.HISTOGRAM
        if self.merge is not None:
            return self.merge
        return Merge.SUM if self.unit.unit in _SUMMED else Merge.NONE


@dataclass(slots=True)
class ImportedFigures:
    """All figures of a file.

    tool: its name. missing: sentences on what the file does not tell, or what of it is not
    imported. left_out: 'place: reason' of each record that cannot be used. span: (begin, end) of
    the measurement in seconds since 1970; None where the file does not tell. is_sum: whether
    figures of several files were summed. settings: what parts of one run have in common: url,
    rate, duration. counts: requests by outcome, where the file states them all.
    """

    tool: str
    rows: list[ImportedRow] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    span: tuple[float, float] | None = None
    is_sum: bool = False
    settings: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add_histogram(
        self,
        place: str,
        test: str,
        metric: str,
        histogram: ImportedHistogram,
        unit: Unit,
        **more: Any,
    ) -> None:
        """Adds a distribution; nothing for an empty one."""
        if histogram.counts:
            largest = max(histogram.counts)
            self.rows.append(
                ImportedRow(place, test, metric, largest, unit, histogram=histogram, **more)
            )

    def add_counts(
        self,
        place: str,
        test: str,
        counts: Mapping[str, int],
        factors: Mapping[str, str],
        at_s: float | None,
    ) -> None:
        """Adds requests by outcome, and remembers them for `conservation`."""
        for metric, count in counts.items():
            self.counts[metric] = self.counts.get(metric, 0) + count
            unit = FAILURES if metric == "errors_count" else COUNT
            self.add(place, test, metric, count, unit, factors=factors, at_s=at_s)

    def add_rate(
        self, place: str, value: Any, factors: Mapping[str, str], at_s: float | None
    ) -> None:
        """Adds the rate of requests, the headline of a load generator."""
        self.add(
            *(place, "", "requests_per_s", value, PER_S),
            factors=factors,
            at_s=at_s,
            headline=True,
        )

    def conservation(self, who: str) -> str:
        """Returns whether requests sent are those answered and failed; '' where a count is missing.

        who: whose counts these are, in words.
        """
        names = ("sent_count", "completed_count", "errors_count")
        if not self.counts.keys() >= set(names):
            return ""
        sent, answered, failed = (self.counts[name] for name in names)
        lost = sent - answered - failed
        sums = f"{sent:,} requests sent by {who} = {answered:,} answered + {failed:,} failed"
        if lost < 0:
            return f"The counts do not add up: {sums} {lost:,}. Check that all files are whole."
        return f"{sums}{f' + {lost:,} lost, without any outcome' if lost else ''}."

    def add(self, place: str, test: str, metric: str, value: Any, unit: Unit, **more: Any) -> None:
        """Adds a figure, or the reason why its value is none; `more` are further fields of Row."""
        try:
            figure = number(value, metric)
        except ValueError as error:
            self.left_out.append(f"{place}: {error}")
        else:
            self.rows.append(ImportedRow(place, test, metric, figure, unit, **more))


QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999))


def with_percentiles(figures: ImportedFigures) -> None:
    """Adds the percentiles of histograms of few repetitions, which have no interval.

    Of more repetitions, the analysis has them with intervals. A percentile that a file states
    itself stays as it is.
    """
    stated = {row.group for row in figures.rows}
    repetitions = Counter(row.group for row in figures.rows)
    for row in list(figures.rows):
        if row.histogram is None or repetitions[row.group] >= histograms.LEAST_TRIALS:
            continue
        counts = row.histogram.counts
        merged = histograms.merge([(list(counts), list(counts.values()))])
        for name, q in QUANTILES:
            stem = row.metric.removesuffix(f"_{row.unit.unit}")
            metric = f"{stem}_{name}_{row.unit.unit}"
            value = histograms.quantile_of_counts(*merged, q)
            own = replace(row, metric=metric, value=value, histogram=None, headline=False)
            if own.group not in stated:
                figures.rows.append(own)


def meets(row: ImportedRow, conditions: Mapping[str, str]) -> bool:
    """States whether a row has these values; keys are `test`, `metric` and its factors."""
    values = {"test": row.test, "metric": row.metric, **row.factors}
    return all(values.get(key) == value for key, value in conditions.items())


def number(value: Any, what: str) -> float:
    """Returns a finite number. ValueError with a few words for anything else."""
    if value is None:
        raise ValueError(f"'{what}' is missing; a missing value is not a zero")
    if isinstance(value, Repeated):
        raise ValueError(f"'{what}' is there more than once, with different values: {value!s:.60}")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"'{what}' is no number: {value!r:.40}")
    try:
        figure = float(value)
    except OverflowError:
        figure = math.inf
    if not math.isfinite(figure):
        raise ValueError(f"'{what}' is no number: {value!r:.40}")
    return figure


def number_or_none(value: Any) -> float | None:
    """Returns a finite number above 0, or None for anything else."""
    try:
        figure = number(value, "")
    except ValueError:
        return None
    return figure if figure > 0 else None


def mapping(value: Any, what: str) -> Mapping[str, Any]:
    """Returns a JSON object. ValueError with a few words for anything else."""
    if isinstance(value, Repeated):
        raise ValueError(f"'{what}' is there more than once, with different values")
    if not isinstance(value, dict):
        raise ValueError(f"'{what}' is missing or no JSON object")
    return value


def items(value: Any, what: str) -> Sequence[Any]:
    """Returns a JSON array. ValueError with a few words for anything else."""
    if not isinstance(value, list):
        raise ValueError(f"'{what}' is missing or no JSON array")
    return value


def mappings(value: Any, what: str) -> Iterator[Mapping[str, Any]]:
    """Yields the JSON objects of an array. ValueError with a few words for anything else."""
    for item in items(value, what):
        yield mapping(item, what)


def texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Returns the values as texts."""
    return {str(key): str(value) for key, value in values.items()}
