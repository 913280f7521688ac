"""Which lines of two results belong together, and what their comparison says.

Three designs, in falling strength: paired by round (two targets interleaved in one run),
independent or paired plain numbers, separate runs (whose variance between runs joins the interval).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nephoscope.analysis import between_runs, compare, multiplicity
from nephoscope.analysis.compare import Comparison
from nephoscope.analysis.estimates import Refused
from nephoscope.model import Better, Factors, MetricResult, RunResult, factors_key
from nephoscope.results import names

PAIRED_BY_ROUND = "paired by round"
PAIRED_BY_LINE = "paired by line"
INDEPENDENT = "independent"
SEPARATE_RUNS = "separate runs"

LineKey = tuple[str, str, str]
"""Benchmark, metric and canonical factors: what has to agree for two lines to be compared."""

History = Callable[[LineKey, str], Sequence[Sequence[float]]]
"""Trial values of a line in other runs of the same machine: (key, target) -> one list a run."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the user asked for: ratios, 0.03 is 3 %."""

    margin: float
    confidence: float
    metrics: frozenset[str] = frozenset()

    def wants(self, metric: str) -> bool:
        """Whether this metric is to be compared."""
        return not self.metrics or metric in self.metrics


@dataclass(frozen=True, slots=True)
class Compared:
    """One line of a comparison: what, of which two, by which design, with which outcome.

    p: two-sided p value of the test of the design (Wilcoxon for pairs, Brunner–Munzel else).
    p_holm: the same, corrected for all lines of the table.
    """

    benchmark: str
    metric: str
    factors: Factors
    a: str
    b: str
    design: str
    comparison: Comparison
    p: float | None
    p_holm: float | None = None

    @property
    def label(self) -> str:
        """Name of the line in sentences."""
        return names.label(self.benchmark, self.metric, self.factors).strip()

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output (contracts/compare.schema.json)."""
        return {
            "benchmark": self.benchmark,
            "metric": self.metric,
            "factors": dict(self.factors),
            "a": self.a,
            "b": self.b,
            "design": self.design,
            "p": self.p,
            "p_holm": self.p_holm,
            **self.comparison.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Comparisons:
    """A table of comparisons, and what a reader has to know about all of it."""

    lines: tuple[Compared, ...]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The `--json` output (contracts/compare.schema.json)."""
        return {
            "comparisons": [line.to_json() for line in self.lines],
            "warnings": list(self.warnings),
        }


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
    line = Compared("", "value", {}, *labels, design, comparison, _p(comparison, paired))
    return _corrected([line], [])


def of_targets(result: RunResult, a: str, b: str, rules: Rules) -> Comparisons:
    """Two targets of one run: its rounds held both, so that round i of A belongs to B's."""
    left, right = _index(result, a), _index(result, b)
    lines, warnings = [], []
    for key in _common(left, right, rules):
        one, two = _by_round(left[key], right[key])
        try:
            comparison = compare.paired(
                one,
                two,
                better=left[key].better,
                margin=rules.margin,
                unit=left[key].estimate.unit,
                confidence=rules.confidence,
            )
        except Refused as reason:
            warnings.append(f"{_text(key, left[key])}: {reason}")
            continue
        lines.append(_line(left[key], a, b, PAIRED_BY_ROUND, comparison, True))
    return _corrected(lines, warnings)


def of_runs(
    a: RunResult,
    b: RunResult,
    targets: tuple[str, str],
    history: tuple[History, History],
    rules: Rules,
) -> Comparisons:
    """Two separate runs: never interleaved, so the variance between runs joins the interval."""
    left, right = _index(a, targets[0]), _index(b, targets[1])
    labels = (f"{a.run['id']}:{targets[0]}", f"{b.run['id']}:{targets[1]}")
    lines = []
    warnings = [
        "The two runs were not interleaved: whatever changed between them (the hour, neighbours, "
        "temperature) is part of the difference. The intervals carry the variance between runs; "
        "one run with both targets would tell more with less."
    ]
    for key in _common(left, right, rules):
        try:
            comparison = between_runs.separate_runs(
                left[key].trial_values,
                right[key].trial_values,
                history[0](key, targets[0]),
                history[1](key, targets[1]),
                better=left[key].better,
                margin=rules.margin,
                unit=left[key].estimate.unit,
                confidence=rules.confidence,
            )
        except Refused as reason:
            warnings.append(f"{_text(key, left[key])}: {reason}")
            continue
        lines.append(_line(left[key], *labels, SEPARATE_RUNS, comparison, False))
    warnings.extend(_only_in_one(left, right, rules))
    return _corrected(lines, warnings)


def _index(result: RunResult, target: str) -> dict[LineKey, MetricResult]:
    return {
        (line.benchmark, line.metric, factors_key(line.factors)): line
        for line in result.metrics
        if line.target == target and line.trial_values and line.better is not Better.NONE
    }


def _common(
    left: Mapping[LineKey, MetricResult], right: Mapping[LineKey, MetricResult], rules: Rules
) -> list[LineKey]:
    return [key for key in left if key in right and rules.wants(key[1])]


def _only_in_one(
    left: Mapping[LineKey, MetricResult], right: Mapping[LineKey, MetricResult], rules: Rules
) -> list[str]:
    single = [key for key in {**left, **right} if (key in left) != (key in right)]
    count = sum(rules.wants(key[1]) for key in single)
    if not count:
        return []
    example = _text(single[0], {**left, **right}[single[0]])
    return [f"{count} lines are in one run only and were left out, such as {example}."]


def _by_round(a: MetricResult, b: MetricResult) -> tuple[list[float], list[float]]:
    """Values of the rounds that both have, in the order of rounds."""
    left = dict(zip(a.rounds, a.trial_values, strict=True))
    right = dict(zip(b.rounds, b.trial_values, strict=True))
    rounds = sorted(left.keys() & right.keys())
    return [left[r] for r in rounds], [right[r] for r in rounds]


def _text(key: LineKey, line: MetricResult) -> str:
    return names.label(key[0], key[1], line.factors)


def _line(
    line: MetricResult, a: str, b: str, design: str, comparison: Comparison, paired: bool
) -> Compared:
    return Compared(
        line.benchmark, line.metric, line.factors, a, b, design, comparison, _p(comparison, paired)
    )


def _p(comparison: Comparison, paired: bool) -> float | None:
    if paired:
        return comparison.p_wilcoxon
    if comparison.p_brunner_munzel is not None:
        return comparison.p_brunner_munzel
    return comparison.p_mann_whitney


def _corrected(lines: Sequence[Compared], warnings: Sequence[str]) -> Comparisons:
    """Holm's correction over the table: with many lines, some p is small by chance."""
    known = [line for line in lines if line.p is not None]
    adjusted = multiplicity.holm([line.p for line in known if line.p is not None])
    by_line = {id(line): float(p) for line, p in zip(known, adjusted, strict=True)}
    return Comparisons(
        tuple(replace(line, p_holm=by_line.get(id(line))) for line in lines), tuple(warnings)
    )
