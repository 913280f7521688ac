"""Noise of a machine: the smallest difference that interleaved comparisons on it decide."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from nephoscope.core import units
from nephoscope.core.model import Estimate, Factors, MetricResult, RunResult, factors_key, stated
from nephoscope.core.records import dataclass
from nephoscope.features.comparison.headlines import title_of
from nephoscope.features.comparison.interleaving import interleave
from nephoscope.measure.plans import Plan, Repeat
from nephoscope.report import wording
from nephoscope.results.counters import CounterLine, TrialCounters
from nephoscope.results.names import seed_of
from nephoscope.stats import compare, detectable
from nephoscope.stats.detectable import (
    LEAST_ROUNDS,
    MOST_REPETITIONS,
    DetectableDifference,
    NeededRepetitions,
)
from nephoscope.stats.statistics.values import Refused, percent

MOST_LINES = 8
"""Results that are predicted; a benchmark of many sizes has more, which would take minutes."""
NARROWEST = 1e-9
"""Width of intervals at which measuring would end before the time is over."""


@dataclass(frozen=True, slots=True)
class NoisyResult:
    """What comparisons of one result decide.

    rounds: measured, each with both sides. repetitions_needed: a side, for the wanted difference.
    """

    benchmark: str
    metric: str
    factors: Factors
    title: str
    rounds: int
    comparisons: tuple[DetectableDifference, ...]
    repetitions_needed: NeededRepetitions | None


@dataclass(frozen=True, slots=True)
class Noise:
    """The smallest differences that comparisons decide on one machine.

    duration_s: of the measurement. difference: the wanted one, a ratio. repetitions: a side, of
    the comparison in the conclusion. margin: ratio that verdicts of better and worse add. power:
    share of comparisons that decide such a difference. counters: those of the machine meanwhile, of
    the side on which they rose higher.
    """

    run: str
    target: str
    duration_s: float
    confidence: float
    power: float
    difference: float
    repetitions: int
    margin: float
    results: tuple[NoisyResult, ...]
    counters: tuple[CounterLine, ...]
    warnings: tuple[str, ...]

    @stated
    def conclusion(self) -> str:
        """What is decided, and what the wanted difference needs, in one sentence."""
        rows = {line.title: self.at_repetitions(line) for line in self.results}
        names = _short_names(self.results)
        parts = [
            f"{_difference(row)}{f' in {name}' if len(rows) > 1 else ''}"
            for name, row in zip(names, rows.values(), strict=True)
        ]
        needed = [needed_text(line.repetitions_needed) for line in self.results]
        if len(needed) > 1 == len(set(needed)):
            needed = [f"{needed[0]} in each"]
        machine = "this machine" if self.target == "local" else wording.clean(self.target)
        return (
            f"With {self.repetitions} interleaved repetitions a side, {machine} decides "
            f"differences of {wording.joined(parts)} and more; {percent(self.difference)} needs "
            f"{wording.joined(needed)}."
        )

    def at_repetitions(self, line: NoisyResult) -> DetectableDifference:
        """Returns the comparison in the conclusion."""
        return next(row for row in line.comparisons if row.n == self.repetitions)


def plan_of(plan: Plan, duration_s: float, seed: int | None) -> Plan:
    """Returns a plan that measures the settings of another one twice in each round, for so long.

    Raises UsageError for a plan that `compare --interleave` cannot merge either.
    """
    repeat = Repeat(
        min=LEAST_ROUNDS,
        max=MOST_REPETITIONS,
        look_every=MOST_REPETITIONS,
        relative_half_width=NARROWEST,
    )
    update = {
        "name": "noise",
        "question": "What is the smallest difference that comparisons on this machine decide?",
        "repeat": repeat,
        "seed": seed,
    }
    return interleave(plan, plan, duration_s).model_copy(update=update)


def analyse(
    result: RunResult,
    target: str,
    *,
    difference: float,
    repetitions: int,
    confidence: float,
    margin: float,
) -> Noise:
    """Returns the noise of a run of `plan_of`, by the words of `Noise`. target: as named."""
    pairs = _pairs(result)
    lines: list[NoisyResult] = []
    warnings: list[str] = []
    for left, right in pairs[:MOST_LINES]:
        try:
            lines.append(_of_line(left, right, difference, repetitions, confidence))
        except Refused as reason:
            warnings.append(f"{left.label}: {reason}")
    if len(pairs) > MOST_LINES:
        warnings.append(
            f"{len(pairs) - MOST_LINES} of {len(pairs)} results are left out; select fewer "
            "settings with --set."
        )
    excluded = result.run.trials.invalid + result.run.trials.failed
    if excluded:
        warnings.append(f"{wording.plural(excluded, 'trial')} were excluded: {_reason(result)}")
    counters = result.part(TrialCounters)
    return Noise(
        run=result.run.id,
        target=target,
        duration_s=result.run.spent_s or 0.0,
        confidence=confidence,
        power=detectable.POWER,
        difference=difference,
        repetitions=repetitions,
        margin=margin,
        results=tuple(lines),
        counters=tuple(_highest(counters.lines if counters else ())),
        warnings=tuple(warnings),
    )


def ratio_text(estimate: Estimate) -> str:
    """Returns a difference or a half width with its interval: '3.1 % [2.6, 4.0]'.

    From 100 % on it is a factor: '×4.8 [2.9, 8.7]'.
    """
    if estimate.value >= 1:
        ends = (1 + end for end in (estimate.value, estimate.low or 0.0, estimate.high or 0.0))
        value, low, high = (units.format_number(end, 2) for end in ends)
        return f"×{value} [{low}, {high}]"
    return units.format_interval(estimate.value, estimate.low, estimate.high, "ratio", 2)


def needed_text(needed: NeededRepetitions | None) -> str:
    """Returns a number of repetitions with its interval: '24 [15, 40]'."""
    if needed is None:
        return "an unknown number"
    if needed.n is None:
        return f"more than {MOST_REPETITIONS}"
    high = f"more than {MOST_REPETITIONS}" if needed.high is None else str(needed.high)
    return f"{needed.n} [{needed.low}, {high}]"


def _pairs(result: RunResult) -> list[tuple[MetricResult, MetricResult]]:
    """Returns both sides of the headline results, of which one stands for those that go with it.

    Operations and bytes per second of equal operations have the same ratios.
    """
    a, b = result.run.targets
    main = [line for line in result.metrics if line.headline and line.trial_values]
    lines_of_b = {_key(line): line for line in main if line.target == b}
    pairs: list[tuple[MetricResult, MetricResult]] = []
    known: set[tuple[str, ...]] = set()
    for line in main:
        line_of_b = lines_of_b.get(_key(line))
        if line.target != a or line_of_b is None:
            continue
        left, right = compare.shared_rounds(line, line_of_b)
        ratios = tuple(f"{ratio:.6g}" for ratio in compare.round_shifts(left, right))
        if ratios not in known:
            pairs.append((line, line_of_b))
            known.add(ratios)
    return pairs


def _of_line(
    a: MetricResult, b: MetricResult, difference: float, repetitions: int, confidence: float
) -> NoisyResult:
    sides = compare.shared_rounds(a, b)
    rows = detectable.detectable(
        *sides,
        (*detectable.SIZES, repetitions),
        confidence=confidence,
        seed=seed_of(*_key(a)),
    )
    return NoisyResult(
        a.benchmark,
        a.metric,
        a.factors,
        title_of(a),
        len(sides[0]),
        rows,
        detectable.repetitions_for(rows, difference),
    )


def _key(line: MetricResult) -> tuple[str, str, str]:
    return line.benchmark, line.metric, factors_key(line.factors)


def _short_names(lines: Sequence[NoisyResult]) -> list[str]:
    """Returns the names of the benchmarks, or of the results where a benchmark has several."""
    benchmarks = [line.benchmark for line in lines]
    if len(set(benchmarks)) == len(benchmarks):
        return benchmarks
    return [line.title for line in lines]


def _difference(row: DetectableDifference) -> str:
    return "unknown size" if row.difference is None else ratio_text(row.difference)


def _reason(result: RunResult) -> str:
    reasons = [reason for trial in result.invalid for reason in trial.reasons]
    return reasons[0] if reasons else "no reason is known."


def _highest(lines: Iterable[CounterLine]) -> list[CounterLine]:
    """Returns the line that rose higher of each counter that was above zero."""
    highest: dict[str, CounterLine] = {}
    for line in lines:
        if not line.maximum:
            continue
        known = highest.get(line.counter)
        if known is None or known.maximum is None or known.maximum < line.maximum:
            highest[line.counter] = line
    return list(highest.values())


def reason_of_nothing(result: RunResult, noise: Noise, duration_s: float) -> tuple[str, str]:
    """Returns why a run shows no noise, and what to do, each in a sentence.

    duration_s: that was asked for.
    """
    rounds = [len(compare.shared_rounds(*pair)[0]) for pair in _pairs(result)]
    if rounds and max(rounds) < LEAST_ROUNDS:
        needed_s = duration_s * LEAST_ROUNDS / max(1, *rounds) * 1.3
        return (
            f"{units.format_duration(duration_s)} allowed {wording.plural(max(rounds), 'round')}, "
            f"and the noise takes at least {LEAST_ROUNDS}.",
            f"Use --for {math.ceil(needed_s / 10) * 10}s or more, or a shorter benchmark.",
        )
    if noise.warnings:
        return f"There is nothing to predict: {noise.warnings[0]}", "Measure something else."
    return "The measurement has no headline result.", "Name another benchmark."
