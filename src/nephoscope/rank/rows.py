"""The rows of a ranking: each metric at each setting, with the lines of all alternatives."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from nephoscope.analysis.compare import round_shifts, shared_rounds
from nephoscope.analysis.statistics.dependence import ASSUMED
from nephoscope.analysis.statistics.values import Array
from nephoscope.errors import UsageError
from nephoscope.model import Better, Factors, LineKey, MetricResult, factors_key
from nephoscope.naming import line_name
from nephoscope.rank.pairs import MIN_N, Names, Pair, of_one_run
from nephoscope.rank.records import RowKind
from nephoscope.rank.resources import parameter_of, resource_of
from nephoscope.results.lines import pool_comparisons

RANK = "rank"
"""Unit of a value that is a rank itself, as some publications print."""

NOT_MEASURED = "not measured"

MAX_PAIRS = 20_000
"""Comparisons of two alternatives in a metric; each takes about 10 ms."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A line of one alternative. source: index of the run, or of the file, that it comes from.

    parameter, resource, kind, note: of published figures; of a run they follow from the benchmark.
    """

    alternative: str
    source: int
    line: MetricResult
    parameter: str = ""
    resource: str = ""
    kind: RowKind = "value"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A metric at one setting: line of each alternative, reason of each gap, and all pairs."""

    parameter: str
    benchmark: str
    metric: str
    factors: Factors
    kind: RowKind
    resource: str
    better: Better
    unit: str
    lines: Mapping[str, MetricResult]
    gaps: Mapping[str, str]
    pairs: Mapping[Names, Pair]
    note: str = ""

    @property
    def label(self) -> str:
        """Returns the row's name in a sentence."""
        return line_name(self.benchmark, self.metric, self.factors)

    @property
    def tested(self) -> bool:
        """States whether any two alternatives have an interval."""
        return any(pair.error is not None for pair in self.pairs.values())

    @property
    def has_ratio(self) -> bool:
        """States whether ratios of the values have a meaning; those of ranks have none."""
        return self.unit != RANK and self.kind != "consistency"

    def pair(self, a: str, b: str) -> Pair:
        """Returns B against A."""
        if a == b:
            return Pair(0.0, 0.0, 1.0)
        return self.pairs[a, b] if (a, b) in self.pairs else self.pairs[b, a].reversed()

    def covers(self, alternatives: Collection[str]) -> bool:
        """States whether all of these alternatives have a value."""
        return all(name in self.lines for name in alternatives)


@dataclass
class Alternatives:
    """Lines of all alternatives, measured in one run, and why some lack a line.

    reasons: by alternative, benchmark and metric, '' of which stands for all metrics; `no_reason`
    where there is none.
    """

    confidence: float
    names: list[str] = field(default_factory=list)
    measurements: list[Measurement] = field(default_factory=list)
    reasons: dict[tuple[str, str, str], str] = field(default_factory=dict)
    no_reason: str = NOT_MEASURED
    warnings: list[str] = field(default_factory=list)

    def compare(self, a: Measurement, b: Measurement, prior: Array) -> Pair:
        """Compares two lines. prior: of the autocorrelation of their rounds."""
        return of_one_run(a.line, b.line, self.confidence, prior)

    def reason(self, alternative: str, line: MetricResult) -> str:
        """Returns why an alternative lacks a line like this one."""
        of_all = self.reasons.get((alternative, line.benchmark, ""), self.no_reason)
        return self.reasons.get((alternative, line.benchmark, line.metric), of_all)


def rows_of(alternatives: Alternatives) -> tuple[list[Row], list[str]]:
    """Returns the rows that at least two alternatives have, and a sentence on what is excluded.

    Raises UsageError where one alternative has two lines of one metric and setting.
    """
    by_row: dict[tuple[str, ...], dict[str, Measurement]] = {}
    for item in alternatives.measurements:
        line = item.line
        key = (item.kind, item.parameter, line.benchmark, line.metric, factors_key(line.factors))
        if item.alternative in by_row.setdefault(key, {}):
            raise UsageError(
                f"'{item.alternative}' has two values of {line.label}.",
                "Name the alternatives: A=RUN B=RUN; or name a factor of the plan with --by.",
            )
        by_row[key][item.alternative] = item
    pairs = sum(len(cells) * (len(cells) - 1) // 2 for cells in by_row.values())
    if pairs > MAX_PAIRS:
        raise UsageError(
            f"{len(alternatives.names)} alternatives and {len(by_row)} metrics make {pairs:,} "
            f"comparisons; the limit is {MAX_PAIRS:,}.",
            "Rank fewer alternatives or metrics.",
        )
    priors = pool_comparisons(dict(_round_shifts(by_row.values())))
    rows, excluded, single = [], [], []
    for cells in by_row.values():
        first = next(iter(cells.values()))
        label = first.line.label
        values = [value for item in cells.values() for value in item.line.trial_values]
        if len(cells) < 2:
            single.append(_single(label, first, alternatives))
        elif min(values) <= 0:
            excluded.append(f"{label}: a value is not above zero, so that it has no ratio.")
        else:
            prior = priors.get(first.line.benchmark, ASSUMED)
            rows.append(_row(cells, alternatives, prior))
    if single:
        excluded.append(
            f"{len(single)} metric{'s'[: len(single) > 1]} of one alternative only, such as "
            f"{single[0]}."
        )
    return rows, excluded


def _single(label: str, only: Measurement, alternatives: Alternatives) -> str:
    others = (name for name in alternatives.names if name != only.alternative)
    reasons = {name: alternatives.reason(name, only.line) for name in others}
    known = [f"; {name}: {text}" for name, text in reasons.items() if text != NOT_MEASURED]
    return f"{label} of '{only.alternative}'{''.join(known)}"


def _round_shifts(rows: Iterable[Mapping[str, Measurement]]) -> Iterator[tuple[LineKey, Array]]:
    """Yields the logarithms of the rounds' ratios of every pair of alternatives of one run."""
    for cells in rows:
        for a, b in combinations(cells.values(), 2):
            sides = shared_rounds(a.line, b.line)
            if a.source != b.source or sides[0].size < MIN_N or a.line.simulated:
                continue
            if all(np.all(side > 0) and not np.all(side == side[0]) for side in sides):
                # Pairs share alternatives, so that all pairs of a setting count as one series.
                series = f"{a.line.metric} {a.alternative}, {b.alternative}"
                factors = factors_key(a.line.factors)
                yield (a.line.benchmark, series, "", factors), round_shifts(*sides)


def _row(cells: Mapping[str, Measurement], alternatives: Alternatives, prior: Array) -> Row:
    present = [name for name in alternatives.names if name in cells]
    absent = [name for name in alternatives.names if name not in cells]
    first = cells[present[0]]
    line = first.line
    notes = dict.fromkeys(item.note for item in cells.values() if item.note)
    return Row(
        first.parameter or parameter_of(line.benchmark),
        line.benchmark,
        line.metric,
        line.factors,
        first.kind,
        first.resource or resource_of(line.benchmark, line.metric, line.factors),
        line.better,
        line.estimate.unit,
        {name: cells[name].line for name in present},
        {name: alternatives.reason(name, line) for name in absent},
        {
            (a, b): alternatives.compare(cells[a], cells[b], prior)
            for a, b in combinations(present, 2)
        },
        " ".join(notes),
    )


def weights_over(rows: Sequence[Row], shares: Mapping[str, float]) -> list[float]:
    """Returns the weight of each row: equal within a benchmark, whose share is in `shares`."""
    counts = {name: sum(row.benchmark == name for row in rows) for name in shares}
    return [shares.get(row.benchmark, 0.0) / (counts.get(row.benchmark) or 1) for row in rows]


def weighted_pair(rows: Sequence[Row], weights: Sequence[float], a: str, b: str) -> Pair:
    """Returns B against A over several rows: the weighted mean of the logarithms of ratios.

    Errors of rows of one benchmark add up, since one trial may have measured all of them; those of
    different benchmarks are independent. error: None where a row has none.
    """
    log_ratio, by_benchmark = 0.0, dict.fromkeys((row.benchmark for row in rows), 0.0)
    tested = True
    for row, weight in zip(rows, weights, strict=True):
        pair = row.pair(a, b)
        log_ratio += weight * pair.log_ratio
        tested = tested and (pair.error is not None or weight == 0)
        by_benchmark[row.benchmark] += weight * (pair.error or 0.0)
    error = math.hypot(*by_benchmark.values())
    return Pair(log_ratio, error if tested else None)


def log_costs(rows: Sequence[Row], names: Sequence[str]) -> Array:
    """Returns the logarithm of each alternative's cost relative to the first; (rows, names)."""
    return np.array([[row.pair(names[0], name).log_ratio for name in names] for row in rows])
