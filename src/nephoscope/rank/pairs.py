"""Compares two alternatives in one metric, and finds the ranks that such comparisons leave."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nephoscope.analysis import compare
from nephoscope.analysis.compare import Comparison
from nephoscope.analysis.statistics.dependence import ASSUMED
from nephoscope.analysis.statistics.means import t_quantile, two_sided_p
from nephoscope.analysis.statistics.values import Array, Numbers, Refused
from nephoscope.model import Better, Estimate, MetricResult

MIN_N = 4
"""Repetitions (rounds that both have, where they are paired) below which nothing is tested."""
MANY = 1000
"""Degrees of freedom of an interval that states none."""

Names = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Pair:
    """B against A by cost: the value, or its inverse where higher is better.

    log_ratio: natural logarithm of B's cost over A's. error: its standard error, None where it was
    not tested. df: degrees of freedom of the error.
    """

    log_ratio: float
    error: float | None = None
    p: float | None = None
    df: int = MANY

    def reversed(self) -> Pair:
        """Returns A against B."""
        return Pair(-self.log_ratio, self.error, self.p, self.df)

    def estimate(self, confidence: float, n: int, method: str) -> Estimate:
        """Returns the ratio with its interval; without one where it was not tested."""
        value, low, high = math.exp(self.log_ratio), None, None
        if self.error is not None:
            half = t_quantile(self.df, confidence) * self.error
            low, high = math.exp(self.log_ratio - half), math.exp(self.log_ratio + half)
        note = "" if low is not None else f"n = {n}: an interval needs {MIN_N} repetitions."
        return Estimate(value, low, high, confidence, n, "ratio", method, note)


def weaker(pair: Pair, included: Pair) -> Pair:
    """Returns the pair that is told apart only where both are, in the same direction.

    The error of the first grows until its interval covers that of `included`.
    """
    if pair.error is None or included.error is None:
        return Pair(pair.log_ratio)
    error = max(pair.error, abs(included.log_ratio - pair.log_ratio) + included.error)
    p = max(pair.p or 0.0, included.p or 0.0)
    opposite = pair.log_ratio * included.log_ratio <= 0
    return Pair(pair.log_ratio, error, 1.0 if opposite else p, min(pair.df, included.df))


def of_one_run(a: MetricResult, b: MetricResult, confidence: float, prior: Array = ASSUMED) -> Pair:
    """Compares two lines of one run: by round where both share enough rounds.

    prior: of the autocorrelation, which the metrics of one run share.
    Student's t on logarithms, widened for dependence: with 6 rounds a rank test cannot go below
    p = 0.03, and so tells nothing apart among the six pairs of four alternatives.
    """
    sides: tuple[Numbers, Numbers] = compare.shared_rounds(a, b)
    test = compare.paired
    if len(sides[0]) < MIN_N:
        sides, test = (a.trial_values, b.trial_values), compare.independent
    if min(map(len, sides)) < MIN_N:
        return _untested(a, b)
    try:
        comparison = test(
            *sides,
            better=Better.NONE,
            confidence=confidence,
            replications=a.simulated and b.simulated,
            prior=prior,
        )
    except Refused:
        return _untested(a, b)
    return of_comparison(comparison, a, b)


def of_comparison(comparison: Comparison, a: MetricResult, b: MetricResult) -> Pair:
    """Returns the pair of a comparison; of separate runs its interval includes their variance."""
    apart = comparison.p_between_runs is not None
    ratio = comparison.ratio if apart else comparison.ratio_t or comparison.ratio
    if ratio is None or not ratio.low or not ratio.high:
        return _untested(a, b)
    sign = -1 if a.better is Better.HIGHER else 1
    by_t = not apart and comparison.ratio_t is not None
    df = ratio.n - 1 if by_t else MANY
    log_ratio = math.log(ratio.value)
    half = max(math.log(ratio.high) - log_ratio, log_ratio - math.log(ratio.low))
    error = half / t_quantile(df, ratio.confidence)
    p = two_sided_p(log_ratio, error, df) if by_t else comparison.p
    return Pair(sign * log_ratio, error, p, df)


def _untested(a: MetricResult, b: MetricResult) -> Pair:
    sign = -1 if a.better is Better.HIGHER else 1
    return Pair(sign * (math.log(b.estimate.value) - math.log(a.estimate.value)))


def told_apart(p: Mapping[Names, float], confidence: float) -> set[Names]:
    """Returns the pairs that are told apart among all of them (Bonferroni's correction).

    Not Holm's: two copies would get all of the error as soon as every other pair is told apart.
    """
    limit = (1 - confidence) / max(1, len(p))
    return {names for names, value in p.items() if value <= limit}


@dataclass(frozen=True, slots=True)
class Place:
    """A rank, and the range of ranks that the pairs told apart leave."""

    rank: int
    low: int
    high: int


def places(costs: Mapping[str, float], apart: Collection[Names]) -> dict[str, Place]:
    """Returns the ranks of alternatives: those that cannot be told apart share one.

    costs: by alternative, lower is better. apart: the pairs that are told apart. A rank ends where
    all before it are told apart from all after it; so two that share a third neighbour, from which
    neither is told apart, share a rank.
    """

    def is_apart(a: str, b: str) -> bool:
        return (a, b) in apart or (b, a) in apart

    order = sorted(costs, key=lambda name: costs[name])
    result: dict[str, Place] = {}
    rank = 1
    for index, name in enumerate(order):
        before, after = order[:index], order[index:]
        if all(is_apart(left, right) for left in before for right in after):
            rank = index + 1
        better = sum(is_apart(left, name) for left in before)
        worse = sum(is_apart(name, right) for right in after[1:])
        result[name] = Place(rank, 1 + better, len(order) - worse)
    return result


def own_errors(names: Sequence[str], pair: Callable[[str, str], Pair]) -> list[float]:
    """Returns the standard error of each alternative that the errors of all pairs imply.

    Least squares of error(a, b)² = s(a)² + s(b)²; with two alternatives both have the same.
    """
    squares = np.array(
        [[(pair(a, b).error or 0.0) ** 2 if a != b else 0.0 for b in names] for a in names]
    )
    k = len(names)
    if k < 3:
        return [math.sqrt(float(row.sum()) / 2) for row in squares]
    total = float(squares.sum()) / 2 / (k - 1)
    return [math.sqrt(max(0.0, (float(row.sum()) - total) / (k - 2))) for row in squares]
