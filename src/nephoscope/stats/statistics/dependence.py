"""How much do the repetitions of a series depend on each other?

The model is a first-order autoregression of the ranks, so that one outlier or timeout changes
little. Its autocorrelation is never decided by a test: ten repetitions do not tell 0 from 0.5.
Every interval averages over a distribution of weights on `GRID` instead, which combines a prior
with the restricted likelihood of the series (restricted: free of the bias of small samples). The
prior is what the metrics of one machine share (`pooled`), or else `ASSUMED`.
See docs/decisions/0025-dependence-without-a-pretest.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np

from nephoscope.core.grouping import group_by
from nephoscope.stats.statistics.distributions import student_cdf, student_quantile
from nephoscope.stats.statistics.values import Array, Numbers, clean

Key = TypeVar("Key", bound=Hashable)

GRID: Array = np.linspace(0, 0.95, 20)
"""Lag-1 autocorrelations; negative ones count as 0, for they make intervals wider than needed."""

INDEPENDENT: Array = (GRID == 0).astype(float)
"""The prior of values that cannot depend on each other: replications of a simulation."""

_DEPENDENT = (1 - GRID[1:]) ** -1.8


@lru_cache(maxsize=64)
def assumed(n: int) -> Array:
    """Returns the prior of a lone series of n values, fitted to coverage.

    More weight at 0 loses the 90 % of ten values with an autocorrelation of 0.6, less widens the
    intervals of independent ones. Fewer than eight have so few degrees of freedom that Student's t
    itself makes up for part of their dependence, hence more weight at 0.
    """
    none = min(0.8, max(0.45, 1.2 - 0.1 * n))
    return np.concatenate(([none], (1 - none) * _DEPENDENT / _DEPENDENT.sum()))


ASSUMED: Array = assumed(10)
"""Stands for `assumed` of as many values as a series has."""

SHARPNESS = 2.5
"""Power of a series' own likelihood. Fitted as the prior was: with 1, ten independent values cannot
move the prior far enough, and their intervals are wider without covering more at 0.6."""

STATED_FROM = 0.3
"""Autocorrelation from which a result says that its interval was widened."""

LOWER_BOUND_FROM = 0.7
"""Autocorrelation from which few repetitions cannot show how wide the interval has to be."""

TAILS = 1.15
"""Factor of the tails of averaged intervals: most independent series get weight at dependence that
they do not have, so that tails of 5 % together would miss less often than that."""

TAILS_OF_RANKS = 1.07
"""As `TAILS`, of medians and percentiles: their intervals have the width to cover more."""

QUANTILES: Array = np.geomspace(0.01, 1e4, 256)
SMALLEST_TAIL = 1e-15

LEAST_N = 4
PRIOR_SERIES = 4
"""The prior weighs as much as this many series when others are pooled with it."""
ITERATIONS = 10


def midranks(array: Array) -> Array:
    """Ranks 1 … n, ties sharing their mean rank."""
    ordered = np.sort(array)
    first = np.searchsorted(ordered, array, side="left")
    last = np.searchsorted(ordered, array, side="right")
    return (first + last + 1) / 2.0


def posterior(
    values: Numbers, prior: Array = ASSUMED, *, sibling: Numbers = (), weight: float = 0.0
) -> Array:
    """Returns the weight of each autocorrelation in `GRID` given a series in order of execution.

    sibling: a series whose autocorrelation may be the same, with the power of its likelihood.
    """
    array = clean(values, least=0)
    start = assumed(array.size) if prior is ASSUMED else prior
    likelihood = SHARPNESS * _log_likelihood(array)
    if weight:
        likelihood = likelihood + weight * _log_likelihood(clean(sibling))
    return _normalised(likelihood, start)


def posteriors_of_sides(a: Array, b: Array, share: float, prior: Array) -> tuple[Array, Array]:
    """Returns `posterior` for both sides of an unpaired comparison (share: `share_of_variance`).

    Ten repetitions say little about their own dependence: where both sides vary alike, each counts
    for the other too. With more repetitions each side speaks for itself.
    """
    weight = 4 * share * (1 - share) * _fewness(min(a.size, b.size))
    return (
        posterior(a, prior, sibling=b, weight=weight),
        posterior(b, prior, sibling=a, weight=weight),
    )


def _fewness(n: int) -> float:
    """1 up to ten repetitions, falling to an eighth at twenty."""
    return min(1.0, 1000 / n**3)


def _normalised(log_likelihood: Array, prior: Array) -> Array:
    weights = prior * np.exp(log_likelihood - log_likelihood.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def _log_likelihood(array: Array) -> Array:
    """The restricted log-likelihood of the series' ranks at each autocorrelation of `GRID`."""
    n = array.size
    ranks = midranks(array) - (n + 1) / 2
    if n < LEAST_N or not np.any(ranks):
        return np.zeros_like(GRID)
    squares, inner = np.sum(ranks**2), ranks[1:-1]
    # The inverse of the correlation matrix has three diagonals, hence sums instead of matrices.
    innovations = (squares + GRID**2 * np.sum(inner**2) - 2 * GRID * (ranks[1:] @ ranks[:-1])) / (
        1 - GRID**2
    )
    information = (n - (n - 2) * GRID) / (1 + GRID)
    mean = -GRID * np.sum(inner) / (1 + GRID) / information  # generalised least squares
    residual = innovations - mean**2 * information
    return np.asarray(
        -(n - 1) / 2 * (np.log(1 - GRID**2) + np.log(residual)) - np.log(information) / 2
    )


def pooled(groups: Iterable[Sequence[Numbers]], prior: Array = ASSUMED) -> Array:
    """Returns the distribution of the autocorrelation over the series of one machine.

    groups: series that were measured in the same trials and may share their noise; each group
    counts as one series. The distribution is fitted by expectation and maximisation, with `prior`
    as so many further series (`PRIOR_SERIES`).
    """
    likelihoods, shares = [], []
    for group in groups:
        for values in group:
            likelihoods.append(_log_likelihood(clean(values, least=0)))
            shares.append(1 / len(group))
    if not likelihoods:
        return prior
    rows, weights = np.array(likelihoods), prior
    for _ in range(ITERATIONS):
        weights = PRIOR_SERIES * prior + np.array(shares) @ _normalised(rows, weights)
        weights = weights / weights.sum()
    return weights


def pooled_by_family(
    series: Mapping[Key, Numbers],
    family: Callable[[Key], Hashable],
    setting: Callable[[Key], Hashable],
    prior: Array = ASSUMED,
) -> dict[Key, Array]:
    """Returns the distribution of the autocorrelation that each series of one machine starts from.

    The metrics of a machine share its drift: all its settings give the distribution of the machine,
    those of one family (benchmark) refine it. setting: what was measured in the same trials, whose
    series count as one. One setting alone keeps the prior.
    """

    def pool(keys: Iterable[Key], prior: Array) -> Array:
        settings = group_by(keys, setting).values()
        groups = ([series[key] for key in own] for own in settings)
        return pooled(groups, prior) if len(settings) > 1 else prior

    machine, families = pool(series, prior), {family(key) for key in series}
    of_family = {
        member: pool([key for key in series if family(key) == member], machine)
        for member in families
    }
    return {key: of_family[family(key)] for key in series}


def shared(groups: Iterable[Sequence[Numbers]], prior: Array = ASSUMED) -> Array:
    """Returns the distribution of one autocorrelation that all series have in common.

    groups: series that were measured in the same trials; each group counts as one series. For
    series of one kind, such as the ratios of an isolation run: `pooled` lets series differ.
    """
    likelihood = np.zeros_like(GRID)
    for group in groups:
        for values in group:
            likelihood += _log_likelihood(clean(values)) / len(group)
    return _normalised(likelihood, prior)


def inflation(n: int, correlation: Callable[[Array], Array] = np.asarray) -> Array:
    """Returns how many times dependence raises the variance of a mean of n, for each of `GRID`.

    correlation: of the values averaged, given that of the series.
    """
    lags = np.arange(1, min(n, 400))
    powers = GRID[:, None] ** lags
    return np.asarray(1 + 2 * np.sum((1 - lags / n) * correlation(powers), axis=1))


@lru_cache(maxsize=1024)
def mean_inflation(n: int) -> Array:
    """Returns `inflation` of the mean of n values."""
    return inflation(n)


def autocorrelation(weights: Array) -> float:
    """Returns the mean autocorrelation of a distribution."""
    return float(weights @ GRID)


def effective_n(n: int, weights: Array) -> float:
    """Returns how many independent repetitions n dependent ones are worth, 1 … n."""
    return max(1.0, n / float(weights @ mean_inflation(n)))


DEPENDENT = "Consecutive repetitions depend on each other"
LOWER_BOUND = "The interval is a lower bound:"
"""How the sentences begin on dependence that an interval allows for, and on one that it cannot."""


def sentence(n: int, weights: Array, coverage: float = 1.0) -> str:
    """Returns what the dependence did to an interval; empty below `STATED_FROM`.

    coverage: attained by the widest interval that the values allow.
    """
    rho = autocorrelation(weights)
    bound = (
        f"{LOWER_BOUND} "
        f"{n} repetitions cannot show how far values drift that depend so strongly on each other."
        if rho >= LOWER_BOUND_FROM or coverage < 0.9
        else ""
    )
    if rho < STATED_FROM:
        return bound
    text = (
        f"{DEPENDENT} (autocorrelation about {rho:.1f}): {n} of them "
        f"are worth about {effective_n(n, weights):.0f}, and the interval is widened for it."
    )
    return f"{text} {bound}".rstrip()


def widened_t(n: int, weights: Array) -> Callable[[float], float]:
    """Returns, by confidence, the two-sided quantile of (mean - truth) / (s / sqrt(n)).

    Student's t with n - 1 degrees of freedom, averaged over the autocorrelations: dependence
    raises the variance of the mean and lowers the one inside the sample.
    """
    raised = mean_inflation(n)
    scales = np.sqrt(raised / ((1 - raised / n) * n / (n - 1)))
    outside = weights @ (1 - student_cdf(n - 1, QUANTILES / scales[:, None]))
    logs, t = np.log(np.maximum(outside, SMALLEST_TAIL))[::-1], np.log(QUANTILES)[::-1]
    return lambda confidence: math.exp(
        float(np.interp(math.log(TAILS * (1 - confidence) / 2), logs, t))
    )


def widening(n: int, weights: Array) -> Callable[[float], float]:
    """Returns, by confidence, the factor by which dependence widens the t interval of a mean."""
    quantile = widened_t(n, weights)
    return lambda confidence: quantile(confidence) / student_quantile(n - 1, (1 + confidence) / 2)


def share_of_variance(a: Array, b: Array) -> float:
    """Returns which share of the variance of the difference of two means is that of a's.

    From the mean deviation: one outlier does not decide whose dependence counts.
    """
    if not (np.all(np.isfinite(a)) and np.all(np.isfinite(b))):
        return 0.5
    variance_a, variance_b = (
        float(np.mean(np.abs(v - np.median(v)))) ** 2 / v.size for v in (a, b)
    )
    return variance_a / (variance_a + variance_b) if variance_a + variance_b else 0.5


def widening_of_difference(n: int, share: float, factors: Sequence[float]) -> float:
    """Returns the factor for the difference of two means, given those of both (`widening`).

    n: of the shorter series. share: `share_of_variance`. The power is 1/2 where one mean makes up
    all of the variance. Two factors that count alike are rarely both too small, and often one of
    them too large: the power is then 0.325, and 0.275 for ten values or fewer, fitted to coverage.
    """
    raised = share * factors[0] ** 2 + (1 - share) * factors[1] ** 2
    return float(raised ** (0.5 - (0.7 + 0.2 * _fewness(n)) * share * (1 - share)))


def normal_orthant(z: float, correlation: Array) -> Array:
    """Returns P(X <= z and Y <= z) - P(X <= z)^2 of standard normal X, Y of this correlation."""
    steps = 32
    angles = np.arcsin(correlation)
    middle = (np.arange(steps) + 0.5) / steps
    inside = np.exp(-(z**2) / (1 + np.sin(angles[..., None] * middle)))
    return np.asarray(angles * inside.mean(axis=-1) / (2 * math.pi))
