"""Which lines of two results belong together, and what their comparison says.

Three designs, in falling strength: paired by round (two targets interleaved in one run),
independent or paired plain numbers, separate runs (whose variance between runs joins the interval).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nephoscope.analysis import compare
from nephoscope.analysis.compare import Comparison
from nephoscope.analysis.statistics.dependence import ASSUMED
from nephoscope.analysis.statistics.values import Refused
from nephoscope.comparison import between_runs, settings
from nephoscope.comparison.prior import prior_of
from nephoscope.model import Better, Factors, MetricResult, RunResult, factors_key, stated
from nephoscope.naming import line_name
from nephoscope.results.lines import Key, pool_comparisons

PAIRED_BY_ROUND = "paired by round"
PAIRED_BY_LINE = "paired by line"
INDEPENDENT = "independent"
SEPARATE_RUNS = "separate runs"

LineKey = tuple[str, str, str]
"""Benchmark, metric and canonical factors: what has to agree for two lines to be compared."""

Ignored = Mapping[str, frozenset[str]]
"""Benchmark -> factors by which lines of two targets may differ and still belong together."""

History = Callable[[LineKey, str], Sequence[float]]
"""Medians of a line in other runs of the same machine: (key, target) -> one value a run."""

Pairing = Callable[[MetricResult, MetricResult], Comparison]


@dataclass(frozen=True, slots=True)
class Rules:
    """Settings of a comparison: ratios, 0.03 is 3 %. metrics: only these; all when empty."""

    margin: float
    confidence: float
    metrics: frozenset[str] = frozenset()

    def wants(self, metric: str) -> bool:
        """Returns whether this metric is to be compared."""
        return not self.metrics or metric in self.metrics


@dataclass(frozen=True, slots=True)
class Compared:
    """One line of a comparison: what, of which two, by which design, with which outcome."""

    benchmark: str
    metric: str
    factors: Factors
    a: str
    b: str
    design: str
    comparison: Comparison

    @stated
    def label(self) -> str:
        """Name of the line in sentences; empty for plain numbers."""
        if not self.benchmark:
            return ""
        return line_name(self.benchmark, self.metric, self.factors)


@dataclass(frozen=True, slots=True)
class Comparisons:
    """A table of comparisons, and what a reader has to know about all of it.

    next_step: the command that would decide what two separate runs leave open; else empty.
    """

    comparisons: tuple[Compared, ...]
    warnings: tuple[str, ...]
    next_step: str = ""

    @property
    def leaves_open(self) -> bool:
        """Returns whether separate runs left a line without a verdict."""
        return any(
            line.design == SEPARATE_RUNS and line.comparison.verdict.word == "inconclusive"
            for line in self.comparisons
        )


def of_numbers(
    a: Sequence[float],
    b: Sequence[float],
    *,
    labels: tuple[str, str],
    better: Better,
    paired: bool,
    rules: Rules,
) -> Comparisons:
    """Two plain lists of numbers. Raises Refused when they allow no comparison at all."""
    compute = compare.paired if paired else compare.independent
    comparison = compute(
        a, b, better=better, margin=rules.margin, unit="none", confidence=rules.confidence
    )
    design = PAIRED_BY_LINE if paired else INDEPENDENT
    line = Compared("", "value", {}, *labels, design, comparison)
    return _corrected([line], [], rules)


def of_targets(
    result: RunResult, a: str, b: str, rules: Rules, ignored: Ignored | None = None
) -> Comparisons:
    """Two targets of one run: its rounds held both, so that round i of A belongs to B's."""

    def by_round(left: MetricResult, right: MetricResult) -> Comparison:
        return compare.paired(
            *rounds[_key(left)],
            better=left.better,
            margin=rules.margin,
            unit=left.estimate.unit,
            confidence=rules.confidence,
            names=(a, b),
            replications=left.simulated and right.simulated,
            prior=priors.get(left.benchmark, ASSUMED),
        )

    left, right = _index(result, a, ignored or {}), _index(result, b, ignored or {})
    rounds = {
        key: compare.shared_rounds(left[key], right[key]) for key in left.keys() & right.keys()
    }
    priors = pool_comparisons(
        {
            _of_side(key, ""): compare.round_shifts(*sides)
            for key, sides in rounds.items()
            if not left[key].simulated
        }
    )
    lines, warnings = _compare(left, right, by_round, (a, b), PAIRED_BY_ROUND, rules)
    return _corrected(lines, [*warnings, *_only_in_one(left, right, rules)], rules)


def of_runs(
    a: RunResult,
    b: RunResult,
    targets: tuple[str, str],
    history: tuple[History, History],
    rules: Rules,
    otherwise: frozenset[str] = frozenset(),
    *,
    same_machine: bool = False,
) -> Comparisons:
    """Two separate runs: never interleaved, so the variance between runs joins the interval.

    otherwise: benchmarks that the runs measured with other parameters; a warning names them.
    same_machine: both runs measured one machine, so that both histories are the same.
    """

    def apart(left: MetricResult, right: MetricResult) -> Comparison:
        key = _key(left)
        comparison = between_runs.separate_runs(
            left.trial_values,
            right.trial_values,
            history[0](key, targets[0]),
            history[1](key, targets[1]),
            prior=prior_of(left.benchmark, left.metric),
            same_machine=same_machine,
            better=left.better,
            margin=rules.margin,
            unit=left.estimate.unit,
            confidence=rules.confidence,
            dependence=priors.get(left.benchmark, ASSUMED),
        )
        # Said once for the whole table, not again on every line.
        told = tuple(text for text in comparison.warnings if text != between_runs.NOT_INTERLEAVED)
        return replace(comparison, warnings=told)

    def replicated(left: MetricResult, right: MetricResult) -> Comparison:
        return compare.independent(
            left.trial_values,
            right.trial_values,
            better=left.better,
            margin=rules.margin,
            unit=left.estimate.unit,
            confidence=rules.confidence,
            replications=True,
        )

    left, right = _index(a, targets[0], {}), _index(b, targets[1], {})
    # A simulation is the same at whatever time it is run: there is no drift between two.
    models = all(line.simulated for line in (*left.values(), *right.values()))
    pairing, design = (replicated, INDEPENDENT) if models else (apart, SEPARATE_RUNS)
    priors = pool_comparisons(
        {
            _of_side(key, side): np.array(line.trial_values)
            for side, lines in (("a", left), ("b", right))
            for key, line in lines.items()
            if not line.simulated
        }
    )
    labels = (f"{a.run.id}:{targets[0]}", f"{b.run.id}:{targets[1]}")
    lines, warnings = _compare(left, right, pairing, labels, design, rules)
    touched = otherwise & {line.benchmark for line in lines}
    if touched:
        warnings.append(settings.parameter_warning(touched))
    if not models:
        warnings.insert(0, between_runs.NOT_INTERLEAVED)
    return _corrected(lines, [*warnings, *_only_in_one(left, right, rules)], rules)


def _compare(
    left: Mapping[LineKey, MetricResult],
    right: Mapping[LineKey, MetricResult],
    pairing: Pairing,
    labels: tuple[str, str],
    design: str,
    rules: Rules,
) -> tuple[list[Compared], list[str]]:
    """The lines that both have; a refused one becomes a warning."""
    lines, warnings = [], []
    for key, line in left.items():
        if key not in right or not rules.wants(line.metric):
            continue
        try:
            comparison = pairing(line, right[key])
        except Refused as reason:
            warnings.append(f"{line.label}: {reason}")
            continue
        lines.append(
            Compared(line.benchmark, line.metric, line.factors, *labels, design, comparison)
        )
    return lines, warnings


def _key(line: MetricResult) -> LineKey:
    return (line.benchmark, line.metric, factors_key(line.factors))


def _of_side(key: LineKey, side: str) -> Key:
    return Key(key[0], key[1], side, key[2])


def _index(result: RunResult, target: str, ignored: Ignored) -> dict[LineKey, MetricResult]:
    """Lines of a target that can be compared: with trial values, and with a good direction."""
    lines = (
        replace(line, factors=_without(line.factors, ignored.get(line.benchmark, frozenset())))
        for line in result.metrics
        if line.target == target and line.trial_values and line.better is not Better.NONE
    )
    return {_key(line): line for line in lines}


def _without(factors: Factors, names: frozenset[str]) -> Factors:
    return {name: level for name, level in factors.items() if name not in names}


def _only_in_one(
    left: Mapping[LineKey, MetricResult], right: Mapping[LineKey, MetricResult], rules: Rules
) -> list[str]:
    both = {**left, **right}
    single = [
        line
        for key, line in both.items()
        if (key in left) != (key in right) and rules.wants(line.metric)
    ]
    if not single:
        return []
    return [
        f"{len(single)} metrics exist on one side only and are excluded, such as {single[0].label}."
    ]


def _corrected(lines: Sequence[Compared], warnings: Sequence[str], rules: Rules) -> Comparisons:
    """Holm's correction over the table: with many lines, some p is small by chance."""
    corrected = compare.over_report(
        [line.comparison for line in lines], confidence=rules.confidence
    )
    return Comparisons(
        tuple(
            replace(line, comparison=comparison)
            for line, comparison in zip(lines, corrected, strict=True)
        ),
        tuple(warnings),
    )
