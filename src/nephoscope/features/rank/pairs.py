"""Compares two alternatives in one metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from nephoscope.core.model import Better, MetricResult
from nephoscope.core.records import dataclass
from nephoscope.features.rank.standing import PairErrors
from nephoscope.stats import compare
from nephoscope.stats.compare import TwoSampleComparison
from nephoscope.stats.statistics.dependence import ASSUMED
from nephoscope.stats.statistics.means import t_quantile, two_sided_p
from nephoscope.stats.statistics.values import Array, Numbers, Refused

MIN_N = 4
"""Repetitions (rounds that both have, where they are paired) below which nothing is tested."""
MANY = 1000
"""Degrees of freedom of an interval that states none."""


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
    test: Callable[..., TwoSampleComparison] = compare.paired
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


def of_comparison(comparison: TwoSampleComparison, a: MetricResult, b: MetricResult) -> Pair:
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


def pair_errors(pairs: Sequence[Sequence[Pair]]) -> tuple[Array, PairErrors | None]:
    """Returns the costs of alternatives and the errors of their pairs; no errors without a test.

    pairs: for each alternative its pairs with those after it. A cost is the mean of the logarithms
    of an alternative's ratios to all, which is least squares.
    """
    k = len(pairs)
    shift, error = np.zeros((k, k)), np.zeros((k, k))
    df, p = np.full((k, k), float(MANY)), np.zeros((k, k))
    for a, row in enumerate(pairs):
        for b, pair in enumerate(row, a + 1):
            shift[a, b], shift[b, a] = pair.log_ratio, -pair.log_ratio
            error[a, b] = error[b, a] = math.inf if pair.error is None else pair.error
            df[a, b] = df[b, a] = pair.df
            p[a, b] = p[b, a] = pair.p or 0.0
    costs = shift.mean(axis=0)
    off = ~np.eye(k, dtype=bool)
    tested = bool(np.any(np.isfinite(error[off])))
    return costs - costs[0], PairErrors(error, df, p) if tested else None
