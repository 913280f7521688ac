"""Decides for `compare --fail-on` whether a comparison fails, and by which metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nephoscope.core.errors import UsageError
from nephoscope.core.model import VerdictWord
from nephoscope.features.comparison.result import ComparisonRules, Comparisons
from nephoscope.stats.compare import TwoSampleComparison, error_shares
from nephoscope.stats.verdicts import change

CONDITIONS: Mapping[str, frozenset[VerdictWord]] = {
    "worse": frozenset({"worse"}),
    "different": frozenset({"worse", "better"}),
    "undecided": frozenset({"inconclusive"}),
}
"""Condition of `--fail-on` -> verdicts that meet it."""

FAILED = 1
_NAMED = 5
"""Metrics that a sentence names; the report has all of them."""


@dataclass(frozen=True, slots=True)
class JudgedResult:
    """A comparison with its name, and whether its verdict meets a condition of `--fail-on`."""

    name: str
    comparison: TwoSampleComparison
    is_failing: bool


@dataclass(frozen=True, slots=True)
class FailOnOutcome:
    """Outcome of `--fail-on`: the exit code and the sentence that names the deciding metrics."""

    exit_code: int
    sentence: str
    results: tuple[JudgedResult, ...]


def check(
    comparisons: Comparisons, conditions: Sequence[str], rules: ComparisonRules
) -> FailOnOutcome:
    """Returns the outcome for verdicts that already hold among all metrics (Holm's correction).

    Raises UsageError where the check could not fail whatever was measured: a wanted metric was not
    compared, or there are too few repetitions for so many metrics.
    """
    lines = comparisons.comparisons
    missing = sorted(rules.metrics - {line.metric for line in lines})
    if missing:
        raise UsageError(
            f"--fail-on: {', '.join(missing)} of --metric was not compared.",
            "The sides have no such metric in common; `nephoscope show RUN` lists the metrics.",
        )
    several = len(comparisons.sides) > 1
    return judge(
        [
            ((line.label or line.metric) + (f" of {line.b}" if several else ""), line.comparison)
            for line in lines
        ],
        [line.is_headline for line in lines],
        conditions,
        rules.confidence,
        "metric",
        "select fewer metrics with --metric",
    )


def judge(
    named: Sequence[tuple[str, TwoSampleComparison]],
    headline: Sequence[bool],
    conditions: Sequence[str],
    confidence: float,
    unit: str,
    remedy: str,
) -> FailOnOutcome:
    """Returns the outcome of comparisons with their names.

    headline: of each, whether half of the error rate is for it. unit: what is counted, such as
    'metric'. remedy: what to do besides measuring more where too much was asked. Raises UsageError
    where there are too few repetitions for a verdict.
    """
    if "undecided" not in conditions:
        _require_power([own for _, own in named], headline, confidence, unit, remedy)
    words = frozenset().union(*(CONDITIONS[condition] for condition in conditions))
    results = tuple(JudgedResult(name, own, own.verdict.word in words) for name, own in named)
    failing = [(result.name, result.comparison) for result in results if result.is_failing]
    option = " ".join(f"--fail-on {condition}" for condition in dict.fromkeys(conditions))
    total = f"{len(named)} {unit}{'s'[: len(named) > 1]}"
    if not failing:
        return FailOnOutcome(0, f"{option}: passed, by none of {total}.", results)
    words_of = ", ".join(_named(name, own) for name, own in failing[:_NAMED])
    more = f" and {len(failing) - _NAMED} more" if len(failing) > _NAMED else ""
    return FailOnOutcome(
        FAILED, f"{option}: failed, by {len(failing)} of {total}: {words_of}{more}.", results
    )


def _named(name: str, comparison: TwoSampleComparison) -> str:
    size = f" ({change(comparison.ratio.value)})" if comparison.ratio is not None else ""
    return f"{name} {comparison.verdict.word}{size}"


def _require_power(
    comparisons: Sequence[TwoSampleComparison],
    headline: Sequence[bool],
    confidence: float,
    unit: str,
    remedy: str,
) -> None:
    """Raises UsageError where no p-value could be small enough after Holm's correction."""
    places = [i for i, comparison in enumerate(comparisons) if comparison.p is not None]
    tested = [comparisons[i] for i in places]
    shares = error_shares([headline[i] for i in places])
    alpha = 1 - confidence
    smallest = (
        (_smallest_p(comparison), share) for comparison, share in zip(tested, shares, strict=True)
    )
    if not tested or any(p <= alpha * share for p, share in smallest):
        return
    needed = math.ceil(1 + math.log2(1 / max(shares) / alpha))
    most = max(min(comparison.n_a, comparison.n_b) for comparison in tested)
    count = f"{len(tested)} {unit}{'s'[: len(tested) > 1]}"
    raise UsageError(
        f"--fail-on: {most} repetitions cannot show a difference among {count} at "
        f"{confidence * 100:g} %.",
        f"Measure at least {needed} repetitions a side, or {remedy}.",
    )


def _smallest_p(comparison: TwoSampleComparison) -> float:
    """Returns the smallest p-value that so many values allow; a rank test has a lower bound."""
    if comparison.p_between_runs is not None:
        return 0.0
    if comparison.paired:
        return float(2.0 ** (1 - comparison.n_a))
    return 2 / math.comb(comparison.n_a + comparison.n_b, comparison.n_a)
