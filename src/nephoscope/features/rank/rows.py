"""The rows of a ranking: each metric at each setting, with the lines of all alternatives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import combinations

import numpy as np

from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Better, Factors, LineKey, MetricResult, factors_key
from nephoscope.core.naming import line_name
from nephoscope.core.records import dataclass
from nephoscope.features.rank.many import of_many
from nephoscope.features.rank.pairs import MIN_N, Pair, of_one_run, pair_errors, weaker
from nephoscope.features.rank.records import RowKind
from nephoscope.features.rank.resources import parameter_of, resource_of
from nephoscope.features.rank.standing import Errors, OwnErrors, Standing, combined
from nephoscope.results.lines import pool_comparisons
from nephoscope.results.run_settings import HiddenSetting
from nephoscope.stats import exclusions
from nephoscope.stats.compare import round_shifts, shared_rounds
from nephoscope.stats.statistics.dependence import ASSUMED
from nephoscope.stats.statistics.values import Array

RANK = "rank"
"""Unit of a value that is a rank itself, as some publications print."""

NOT_MEASURED = "not measured"

FEW = 12
"""Alternatives of one run up to which each pair is compared by its own rounds (10 ms a pair)."""

MAX_PAIRS = 20_000
"""Comparisons of pairs, where alternatives come from separate runs."""

NOT_ABOVE_ZERO = "a value is not above zero, so that it has no ratio"


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


@dataclass(frozen=True, eq=False)
class RankRow:
    """A metric at one setting: line of each alternative, reason of each gap, costs and errors.

    costs, errors: of the alternatives in the order of `lines`; see `Standing`.
    """

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
    costs: Array
    errors: Errors | None
    note: str = ""

    @property
    def label(self) -> str:
        """Returns the row's name in a sentence."""
        return line_name(self.benchmark, self.metric, self.factors)

    @property
    def tested(self) -> bool:
        """States whether any two alternatives have an interval."""
        return self.errors is not None

    @property
    def has_ratio(self) -> bool:
        """States whether ratios of the values have a meaning; those of ranks have none."""
        return self.unit != RANK and self.kind != "consistency"

    def covers(self, alternatives: Collection[str]) -> bool:
        """States whether all of these alternatives have a value."""
        return all(name in self.lines for name in alternatives)

    def standing(self, confidence: float) -> Standing:
        """Returns the order of the alternatives in this row."""
        n = min(line.estimate.n for line in self.lines.values())
        return Standing(tuple(self.lines), self.costs, self.errors, confidence, n)

    def positions(self, names: Sequence[str]) -> list[int]:
        """Returns where these alternatives stand in `costs`."""
        at = {name: index for index, name in enumerate(self.lines)}
        return [at[name] for name in names]


@dataclass
class Alternatives:
    """Lines of all alternatives, measured in one run, and why some lack a line.

    reasons: by alternative, benchmark and metric, '' of which stands for all metrics; `no_reason`
    where there is none. excluded: what `exclusions.imbalance` states of compared pairs.
    hidden_settings: what differs between the alternatives beside what is ranked.
    """

    confidence: float
    names: list[str] = field(default_factory=list)
    measurements: list[Measurement] = field(default_factory=list)
    reasons: dict[tuple[str, str, str], str] = field(default_factory=dict)
    no_reason: str = NOT_MEASURED
    warnings: list[str] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)
    hidden_settings: tuple[HiddenSetting, ...] = ()

    def compare(self, a: Measurement, b: Measurement, prior: Array) -> Pair:
        """Compares two lines. prior: of the autocorrelation of their rounds."""
        return of_one_run(a.line, b.line, self.confidence, prior)

    def bounded(self, a: Measurement, b: Measurement, prior: Array) -> Pair:
        """Compares two lines; where trials were excluded for what they measured, with and without.

        Both results have to tell them apart (`analysis.exclusions`).
        """
        pair = self.compare(a, b, prior)
        excluded = exclusions.imbalance(a.line, b.line, (a.alternative, b.alternative))
        if not excluded:
            return pair
        self.excluded.append(excluded)
        left, right = (
            replace(measurement, line=exclusions.as_measured(measurement.line))
            for measurement in (a, b)
        )
        return weaker(pair, self.compare(left, right, prior))

    def without_selections(
        self, errors: Errors | None, lines: Sequence[MetricResult], names: Sequence[str]
    ) -> Errors | None:
        """Returns the errors of many alternatives; those with excluded trials are not tested."""
        if not isinstance(errors, OwnErrors):
            return errors
        selected = [bool(line.exclusions.count) for line in lines]
        if not all(selected):
            whole = selected.index(False)
            for at, name in enumerate(names):
                pair = lines[at], lines[whole]
                self.excluded.append(exclusions.imbalance(*pair, (name, names[whole])))
        return replace(errors, error=np.where(selected, np.inf, errors.error))

    def reason(self, alternative: str, line: MetricResult) -> str:
        """Returns why an alternative lacks a line like this one."""
        of_all = self.reasons.get((alternative, line.benchmark, ""), self.no_reason)
        return self.reasons.get((alternative, line.benchmark, line.metric), of_all)


def rows_of(alternatives: Alternatives) -> tuple[list[RankRow], list[str]]:
    """Returns the rows that at least two alternatives have, and a sentence on what is excluded.

    Raises UsageError where one alternative has two lines of one metric and setting.
    """
    by_row: dict[tuple[str, ...], dict[str, Measurement]] = {}
    for item in alternatives.measurements:
        line = item.line
        if line.estimate.censored:
            bound = units.format_value(line.estimate.value, line.estimate.unit)
            reason = f"at least {bound}: {line.estimate.note}"
            alternatives.reasons[item.alternative, line.benchmark, line.metric] = reason
            continue
        key = (item.kind, item.parameter, line.benchmark, line.metric, factors_key(line.factors))
        if item.alternative in by_row.setdefault(key, {}):
            raise UsageError(
                f"'{item.alternative}' has two values of {line.label}.",
                "Name the alternatives: A=RUN B=RUN; or name a factor of the plan with --by.",
            )
        by_row[key][item.alternative] = item
    compared = _check_pairs(by_row.values())
    priors = pool_comparisons(dict(_round_shifts(compared)))
    rows, excluded, single = [], [], []
    for cells in by_row.values():
        first = next(iter(cells.values()))
        label = first.line.label
        positive = {name: item for name, item in cells.items() if _is_positive(item)}
        if len(cells) < 2:
            single.append(_single(label, first, alternatives))
        elif len(positive) < 2:
            excluded.append(f"{label}: {NOT_ABOVE_ZERO}.")
        else:
            prior = priors.get(first.line.benchmark, ASSUMED)
            rows.append(_row(positive, cells, alternatives, prior))
    if single:
        excluded.append(
            f"{len(single)} metric{'s'[: len(single) > 1]} of one alternative only, such as "
            f"{single[0]}."
        )
    return rows, excluded


def _is_positive(item: Measurement) -> bool:
    return min(item.line.trial_values) > 0


def _by_pairs(cells: Mapping[str, Measurement]) -> bool:
    """States whether each pair is compared on its own: few alternatives, or separate runs."""
    if len(cells) <= FEW:
        return True
    sources = {item.source for item in cells.values() if not item.line.simulated}
    return len(sources) > 1


def _check_pairs(rows: Iterable[Mapping[str, Measurement]]) -> list[Mapping[str, Measurement]]:
    """Returns the rows whose pairs are compared. UsageError where that takes too long."""
    compared = [cells for cells in rows if _by_pairs(cells)]
    pairs = sum(len(cells) * (len(cells) - 1) // 2 for cells in compared)
    if pairs > MAX_PAIRS:
        most = max(map(len, compared))
        raise UsageError(
            f"{most} alternatives of separate runs and {len(compared)} metrics make {pairs:,} "
            f"comparisons; the limit is {MAX_PAIRS:,}.",
            "Rank fewer of them, or measure them in one plan.",
        )
    return compared


def _single(label: str, only: Measurement, alternatives: Alternatives) -> str:
    absent = (name for name in alternatives.names if name != only.alternative)
    reasons = {name: alternatives.reason(name, only.line) for name in absent}
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


def _row(
    cells: Mapping[str, Measurement],
    every: Mapping[str, Measurement],
    alternatives: Alternatives,
    prior: Array,
) -> RankRow:
    """Returns the row of the alternatives in `cells`; every: those without a ratio, too."""
    present = [name for name in alternatives.names if name in cells]
    absent = [name for name in alternatives.names if name not in cells]
    first = cells[present[0]]
    line = first.line
    notes = dict.fromkeys(item.note for item in every.values() if item.note)
    lines = [cells[name].line for name in present]
    errors: Errors | None
    if _by_pairs(cells):
        costs, errors = pair_errors(
            [
                [alternatives.bounded(cells[a], cells[b], prior) for b in present[index + 1 :]]
                for index, a in enumerate(present)
            ]
        )
    else:
        costs, errors, lines = of_many(lines, alternatives.confidence)
        errors = alternatives.without_selections(errors, lines, present)
    return RankRow(
        first.parameter or parameter_of(line.benchmark),
        line.benchmark,
        line.metric,
        line.factors,
        first.kind,
        first.resource or resource_of(line.benchmark, line.metric, line.factors),
        line.better,
        line.estimate.unit,
        dict(zip(present, lines, strict=True)),
        {
            name: NOT_ABOVE_ZERO if name in every else alternatives.reason(name, line)
            for name in absent
        },
        costs,
        errors,
        " ".join(notes),
    )


def weights_over(rows: Sequence[RankRow], shares: Mapping[str, float]) -> list[float]:
    """Returns the weight of each row: equal within a benchmark, whose share is in `shares`."""
    counts = Counter(row.benchmark for row in rows)
    return [shares.get(row.benchmark, 0.0) / counts[row.benchmark] for row in rows]


def log_costs(rows: Sequence[RankRow], names: Sequence[str]) -> Array:
    """Returns the logarithm of each alternative's cost relative to the first; (rows, names)."""
    own = [row.costs[row.positions(names)] for row in rows]
    return np.array([costs - costs[0] for costs in own])


def weighted(
    rows: Sequence[RankRow], weights: Sequence[float], names: Sequence[str], confidence: float
) -> Standing:
    """Returns the order by the weighted geometric mean of costs over several rows.

    It is tested where each row with a weight is.
    """
    costs = np.asarray(weights) @ log_costs(rows, names)
    used = [row for row, weight in zip(rows, weights, strict=True) if weight > 0]
    errors = None
    if all(row.tested for row in used):
        parts = [row.errors.take(row.positions(names)) for row in used if row.errors is not None]
        positive_weights = [weight for weight in weights if weight > 0]
        errors = combined(parts, positive_weights, [row.benchmark for row in used])
    n = min(row.lines[name].estimate.n for row in used for name in names)
    return Standing(tuple(names), costs, errors, confidence, n)
