"""Which lines of two results belong together, and what their comparison says.

Three designs, in falling strength: paired by round (two targets interleaved in one run),
independent or paired plain numbers, separate runs (whose variance between runs joins the interval).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nephoscope.catalog import FINGERPRINT
from nephoscope.core.grouping import group_by
from nephoscope.core.model import (
    Better,
    Factors,
    MetricResult,
    RunResult,
    factors_key,
    stated,
)
from nephoscope.core.naming import level_text, plural
from nephoscope.features.comparison import between_runs, headlines, settings
from nephoscope.features.comparison.compared import Compared
from nephoscope.features.comparison.differences import Difference
from nephoscope.features.comparison.prior import prior_of
from nephoscope.results.excluded import excluded_settings
from nephoscope.results.lines import LineId, pool_comparisons
from nephoscope.stats import censoring, compare, exclusions
from nephoscope.stats.compare import TwoSampleComparison
from nephoscope.stats.statistics import estimates
from nephoscope.stats.statistics.dependence import ASSUMED
from nephoscope.stats.statistics.values import Refused

PAIRED_BY_ROUND = "paired by round"
PAIRED_BY_LINE = "paired by line"
INDEPENDENT = "independent"
SEPARATE_RUNS = "separate runs"

LineKey = tuple[str, str, str]
"""Benchmark, metric and canonical factors: what has to agree for two lines to be compared."""

Ignored = Mapping[str, frozenset[str]]
"""Benchmark -> factors by which lines of two targets may differ and still belong together."""

History = Callable[[LineKey, str], Sequence[float]]
Kin = Callable[[LineKey, str], Sequence[Sequence[float]]]
"""Medians of a line in other runs of the same machine: (key, target) -> one value a run."""

Pairing = Callable[[MetricResult, MetricResult], TwoSampleComparison]


@dataclass(frozen=True, slots=True)
class ComparisonRules:
    """Settings of a comparison: ratios, 0.03 is 3 %. metrics: only these; all when empty.

    is_part: verdicts are not yet corrected, because further comparisons join them.
    """

    margin: float
    confidence: float
    metrics: frozenset[str] = frozenset()
    is_part: bool = False

    def wants(self, metric: str) -> bool:
        """Returns whether this metric is to be compared."""
        return not self.metrics or metric in self.metrics


@dataclass(frozen=True, slots=True)
class Comparisons:
    """A table of comparisons, and what a reader has to know about all of it.

    Of more than two sides, the first one is the base A, and the lines of each other one name it as
    their B. next_step: the command that would decide what two separate runs leave open; else empty.
    differences: what differs between the environments of A and B. unknown: why a part of them could
    not be compared; else empty.
    """

    comparisons: tuple[Compared, ...]
    warnings: tuple[str, ...]
    next_step: str = ""
    differences: tuple[Difference, ...] = ()
    unknown: str = ""

    @stated
    def conclusion(self) -> str:
        """The outcome of the headline results; a sentence for each side compared with A."""
        stated = self.conclusions
        if len(stated) < 2:
            return "".join(stated.values())
        return " ".join(f"{side}: {sentence}" for side, sentence in stated.items())

    @stated
    def conclusions(self) -> Mapping[str, str]:
        """The outcome of the headline results by the side that is compared with A."""
        by_side = group_by(self.comparisons, lambda line: line.b)
        return {side: headlines.conclude(own) for side, own in by_side.items()}

    @property
    def sides(self) -> tuple[str, ...]:
        """Returns the names of the sides that are compared with A."""
        return tuple(dict.fromkeys(line.b for line in self.comparisons))

    @property
    def side(self) -> str:
        """Returns the name of the only side that is compared with A."""
        return self.sides[0] if self.sides else ""

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
    rules: ComparisonRules,
) -> Comparisons:
    """Two plain lists of numbers. Raises Refused when they allow no comparison at all."""
    compute = compare.paired if paired else compare.independent
    comparison = compute(
        a, b, better=better, margin=rules.margin, unit="none", confidence=rules.confidence
    )
    design = PAIRED_BY_LINE if paired else INDEPENDENT
    of_a, of_b = (
        estimates.median(side, unit="none", confidence=rules.confidence) for side in (a, b)
    )
    line = Compared("", "value", {}, *labels, design, comparison, "value", of_a, of_b, True)
    return _corrected([line], [], rules)


def of_targets(
    result: RunResult, a: str, b: str, rules: ComparisonRules, ignored: Ignored | None = None
) -> Comparisons:
    """Two targets of one run: its rounds held both, so that round i of A belongs to B's."""

    def by_round(left: MetricResult, right: MetricResult) -> TwoSampleComparison:
        return compare.paired(
            *compare.shared_rounds(left, right),
            better=left.better,
            margin=rules.margin,
            unit=left.estimate.unit,
            confidence=rules.confidence,
            names=(a, b),
            replications=left.simulated and right.simulated,
            prior=priors.get(left.benchmark, ASSUMED),
            is_anytime=result.run.until == "decided",
        )

    left, right = (_index(result, target, rules, ignored or {}) for target in (a, b))
    rounds = {
        key: compare.shared_rounds(left[key], right[key]) for key in left.keys() & right.keys()
    }
    priors = pool_comparisons(
        {
            _of_side(key, ""): compare.round_shifts(*sides)
            for key, sides in rounds.items()
            if not left[key].simulated and len(sides[0])
        }
    )
    lines, warnings = _compare(left, right, by_round, (a, b), PAIRED_BY_ROUND, rules)
    warnings += [*_without_result(result, a, right), *_without_result(result, b, left)]
    return _corrected(lines, [*warnings, *_only_in_one(left, right)], rules)


def of_runs(
    a: RunResult,
    b: RunResult,
    targets: tuple[str, str],
    history: tuple[History, History],
    rules: ComparisonRules,
    otherwise: frozenset[str] = frozenset(),
    *,
    same_machine: bool = False,
    kin: tuple[Kin, ...] = (),
) -> Comparisons:
    """Two separate runs: never interleaved, so the variance between runs joins the interval.

    otherwise: benchmarks that the runs measured with other parameters; a warning names them.
    same_machine: both runs measured one machine, so that both histories are the same. kin: of each
    side the medians of other machines of its class (`LineHistory.kin`).
    """

    def akin(key: LineKey) -> list[Sequence[float]]:
        groups = (
            group
            for of_side, name in zip(kin, targets, strict=False)
            for group in of_side(key, name)
        )
        # Both sides may be of one class, whose runs count once.
        return list({tuple(group): group for group in groups}.values())

    def apart(left: MetricResult, right: MetricResult) -> TwoSampleComparison:
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
            kin=akin(key),
        )
        # Said once for the whole table, not again on every line.
        warnings = tuple(
            text for text in comparison.warnings if text != between_runs.NOT_INTERLEAVED
        )
        return replace(comparison, warnings=warnings)

    def replicated(left: MetricResult, right: MetricResult) -> TwoSampleComparison:
        return compare.independent(
            left.trial_values,
            right.trial_values,
            better=left.better,
            margin=rules.margin,
            unit=left.estimate.unit,
            confidence=rules.confidence,
            replications=True,
        )

    left, right = _index(a, targets[0], rules), _index(b, targets[1], rules)
    # A simulation is the same at whatever time it is run: there is no drift between two.
    models = all(line.simulated for line in (*left.values(), *right.values()))
    pairing, design = (replicated, INDEPENDENT) if models else (apart, SEPARATE_RUNS)
    priors = pool_comparisons(
        {
            _of_side(key, side): np.array(line.trial_values)
            for side, lines in (("a", left), ("b", right))
            for key, line in lines.items()
            if not line.simulated and line.trial_values
        }
    )
    labels = (f"{a.run.id}:{targets[0]}", f"{b.run.id}:{targets[1]}")
    lines, warnings = _compare(left, right, pairing, labels, design, rules)
    warnings += [*_without_result(a, targets[0], right), *_without_result(b, targets[1], left)]
    touched = otherwise & {line.benchmark for line in lines}
    if touched:
        warnings.append(settings.parameter_warning(touched))
    if not models:
        warnings.insert(0, between_runs.NOT_INTERLEAVED)
    return _corrected(lines, [*warnings, *_only_in_one(left, right)], rules)


def _compare(
    left: Mapping[LineKey, MetricResult],
    right: Mapping[LineKey, MetricResult],
    pairing: Pairing,
    labels: tuple[str, str],
    design: str,
    rules: ComparisonRules,
) -> tuple[list[Compared], list[str]]:
    """The lines that both have; a refused one becomes a warning, and so do excluded trials."""
    lines, warnings, excluded = [], [], []
    common = [key for key in left if key in right]
    titles = headlines.titles_of_headlines(
        [left[key] for key in common], all_wanted=bool(rules.metrics)
    )
    for number, key in enumerate(common):
        line, line_of_b = left[key], right[key]
        excluded.append(exclusions.imbalance(line, line_of_b, labels))
        try:
            bounds = censoring.compared(line, line_of_b, rules.margin)
            comparison = bounds or pairing(line, line_of_b)
            if bounds is None:
                comparison = exclusions.bounded(comparison, line, line_of_b, pairing, labels)
        except Refused as reason:
            warnings.append(f"{line.label}: {reason}")
            continue
        lines.append(
            Compared(
                line.benchmark,
                line.metric,
                line.factors,
                *labels,
                design,
                comparison,
                titles.get(number) or headlines.title_of(line),
                line.estimate,
                line_of_b.estimate,
                number in titles,
            )
        )
    return lines, [*exclusions.warnings(excluded), *warnings]


def _key(line: MetricResult) -> LineKey:
    return (line.benchmark, line.metric, factors_key(line.factors))


def _of_side(key: LineKey, side: str) -> LineId:
    return LineId(key[0], key[1], side, key[2])


def _index(
    result: RunResult, target: str, rules: ComparisonRules, ignored: Ignored | None = None
) -> dict[LineKey, MetricResult]:
    """Lines of a target that can be compared: with trial values, and with a good direction.

    Facts of the machine are no measurements: they are among the differences of the environment.
    """
    set_apart = ignored or {}
    lines = (
        replace(line, factors=_without(line.factors, set_apart.get(line.benchmark, frozenset())))
        for line in result.metrics
        if line.target == target
        and (line.trial_values or line.estimate.censored)
        and line.better is not Better.NONE
        and rules.wants(line.metric)
        and (rules.metrics or line.headline or line.benchmark != FINGERPRINT)
    )
    return {_key(line): line for line in lines}


def _without(factors: Factors, names: frozenset[str]) -> Factors:
    return {name: level for name, level in factors.items() if name not in names}


def _differing(left: Mapping[LineKey, MetricResult], right: Mapping[LineKey, MetricResult]) -> str:
    """Returns which setting of the same metric differs; '' where no metric is on both sides."""
    for a in left.values():
        for b in right.values():
            if (a.benchmark, a.metric) == (b.benchmark, b.metric):
                names = dict.fromkeys((*a.factors, *b.factors))
                texts = [
                    " and ".join(
                        level_text(name, side.factors[name])
                        if name in side.factors
                        else f"no {name}"
                        for side in (a, b)
                    )
                    for name in names
                    if a.factors.get(name) != b.factors.get(name)
                ]
                if texts:
                    return (
                        "A and B were measured with different settings "
                        f"({a.benchmark}: {texts[0]})."
                    )
    return ""


def _only_in_one(
    left: Mapping[LineKey, MetricResult], right: Mapping[LineKey, MetricResult]
) -> list[str]:
    lines = {**left, **right}
    single = [line for key, line in lines.items() if (key in left) != (key in right)]
    if not single:
        return []
    if not left.keys() & right.keys() and (differing := _differing(left, right)):
        return [differing]
    return [
        f"{plural(len(single), 'metric')} of one side only, excluded: {single[0].label}"
        f"{' and others' if len(single) > 1 else ''}."
    ]


def _without_result(
    result: RunResult, target: str, counterparts: Mapping[LineKey, MetricResult]
) -> list[str]:
    """Returns a sentence for each setting that only the other side has, with the reason."""
    return [
        f"{setting.label} on {target}: no result, "
        f"as all its trials ({setting.trials}) were excluded: {setting.reason.rstrip('.')}."
        for setting in excluded_settings(result)
        if setting.target == target
        and any(setting.is_setting_of(line) for line in counterparts.values())
    ]


def _corrected(
    lines: Sequence[Compared], warnings: Sequence[str], rules: ComparisonRules
) -> Comparisons:
    """Holm's correction over the table: with many lines, some p is small by chance.

    The headline results have half of the error rate, so that the others cannot drown them.
    """
    if rules.is_part:
        return Comparisons(tuple(lines), tuple(warnings))
    corrected = compare.over_report(
        [line.comparison for line in lines],
        confidence=rules.confidence,
        primary=[line.is_headline for line in lines],
    )
    return Comparisons(
        tuple(
            replace(line, comparison=comparison)
            for line, comparison in zip(lines, corrected, strict=True)
        ),
        tuple(warnings),
    )


def of_parts(parts: Sequence[Comparisons], rules: ComparisonRules) -> Comparisons:
    """Comparisons of several sides with one base as one report: Holm's correction is over all."""
    lines = [line for part in parts for line in part.comparisons]
    notes = dict.fromkeys(
        text if all(text in each.warnings for each in parts) else f"{part.side}: {text}"
        for part in parts
        for text in part.warnings
    )
    return replace(
        _corrected(lines, list(notes), rules),
        differences=tuple(
            replace(difference, side=part.side) for part in parts for difference in part.differences
        ),
        unknown=" ".join(dict.fromkeys(part.unknown for part in parts if part.unknown)),
    )
