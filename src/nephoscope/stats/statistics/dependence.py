"""How much do the repetitions of a series depend on each other, and how wide is an interval then?

The model is a first-order autoregression of the ranks, so that one outlier or timeout changes
little. Its autocorrelation is never decided by a test: ten repetitions do not tell 0 from 0.5.
Every interval weighs the autocorrelations of `GRID` instead, by a prior times the restricted
likelihood of the series (restricted: free of the bias of small samples). The prior is what the
metrics of one machine share (`pooled`), or else `ASSUMED`. What the weights make of an interval is
one number, its `widening`, at least 1: the classical interval is never narrowed.
See docs/decisions/0074-intervals-of-least-width.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np

from nephoscope.core.grouping import group_by
from nephoscope.stats.statistics.distributions import normal_quantile, student_quantile
from nephoscope.stats.statistics.values import Array, Numbers, clean

Key = TypeVar("Key", bound=Hashable)

GRID: Array = np.linspace(0, 0.95, 20)
"""Lag-1 autocorrelations; negative ones count as 0, for they make intervals wider than needed."""

INDEPENDENT: Array = (GRID == 0).astype(float)
"""The prior of values that cannot depend on each other: replications of a simulation."""

FEW, MANY = 10, 20
"""Up to FEW values the constants are those of few, from MANY on those of many, between them they
change in proportion. Fitted on the frontier of width and coverage (see the decision)."""
NONE_OF_FEW, NONE_OF_MANY, NONE_OF_EACH_FEWER = 0.32, 0.25, 0.05
"""Weight of the assumption at an autocorrelation of 0; the third is added for each value below FEW:
Student's t of few degrees of freedom itself makes up for part of the dependence."""
RISE_OF_FEW, RISE_OF_MANY = 0.25, 1.5
"""Exponent with which the weight of the others rises towards 1."""
SHARPNESS_OF_FEW, SHARPNESS_OF_MANY = 1.15, 2.0
"""Power of a series' own likelihood."""
SHRUNK_OF_FEW, SHRUNK_OF_MANY = 0.1, 0.4
"""Part of the assumption in the prior that other series give: one of them may differ from all."""

STATED_FROM = 0.3
"""Autocorrelation from which a result says that its interval was widened."""

LOWER_BOUND_FROM = 0.7
"""Autocorrelation from which few repetitions cannot show how wide the interval has to be."""

SIBLING = 0.5
"""Power of the likelihood of the other side of an unpaired comparison, where both vary alike."""

STEPS = 64
LEAST_N, LEAST_TESTED = 4, 6
NORMAL_TAIL = 0.84
"""Factor of the level of the test of dependence: its statistic has a heavier upper tail than the
normal distribution (6 to 30 independent values: at most 5 % at 5 %)."""
PRIOR_SERIES = 2
"""The prior weighs as much as this many series when others are pooled with it."""
ITERATIONS = 20


def _by_size(n: int, few: float, many: float) -> float:
    """Returns a constant for n values (`FEW`)."""
    return few + (many - few) * min(1.0, max(0.0, (n - FEW) / (MANY - FEW)))


@lru_cache(maxsize=64)
def assumed(n: int) -> Array:
    """Returns the prior of a lone series of n values, fitted to coverage and width."""
    none = _by_size(n, NONE_OF_FEW, NONE_OF_MANY) + NONE_OF_EACH_FEWER * max(0, FEW - n)
    dependent = (1 - GRID[1:]) ** -_by_size(n, RISE_OF_FEW, RISE_OF_MANY)
    return np.concatenate(([none], (1 - none) * dependent / dependent.sum()))


ASSUMED: Array = assumed(FEW)
"""Stands for `assumed` of as many values as a series has."""

COMMON: Array = np.concatenate(([0.5], np.full(GRID.size - 1, 0.5 / (GRID.size - 1))))
"""Prior of the one autocorrelation that many series have in common: they show it themselves."""


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
    likelihood = _log_likelihood(array)
    if weight:
        likelihood = likelihood + weight * _log_likelihood(clean(sibling))
    sharpness = _by_size(array.size, SHARPNESS_OF_FEW, SHARPNESS_OF_MANY)
    return _normalised(sharpness * likelihood, _shrunk(prior, array.size))


def _shrunk(prior: Array, n: int) -> Array:
    """Returns the prior where n values speak; one that other series gave is shrunk."""
    if prior is ASSUMED:
        return assumed(n)
    part = 0.0 if prior is INDEPENDENT else _by_size(n, SHRUNK_OF_FEW, SHRUNK_OF_MANY)
    return np.asarray((1 - part) * prior + part * assumed(n))


def posteriors_of_sides(a: Array, b: Array, share: float, prior: Array) -> tuple[Array, Array]:
    """Returns `posterior` for both sides of an unpaired comparison (share: `share_of_variance`).

    Where both vary alike, each counts for the other too, with the power SIBLING of its likelihood.
    """
    weight = SIBLING * 4 * share * (1 - share)
    return (
        posterior(a, prior, sibling=b, weight=weight),
        posterior(b, prior, sibling=a, weight=weight),
    )


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


def shared(groups: Iterable[Sequence[Numbers]], prior: Array = COMMON) -> Array:
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


STATED_N = 20
"""Number of values below which dependence is not stated of an interval that allows for it."""
DEPENDENT = "Consecutive repetitions depend on each other"
LOWER_BOUND = "The interval is a lower bound:"
"""How the sentences begin on dependence that an interval allows for, and on one that it cannot."""


def is_dependent(values: Numbers, level: float = 0.05) -> bool:
    """Returns whether a test at this level finds that consecutive values are alike.

    The test is Wald and Wolfowitz's of the serial correlation of the ranks, one-sided, with the
    exact mean and variance over all orders of these values (ties included). It decides what is
    said, never how wide an interval is. Source: Wald & Wolfowitz 1943.
    """
    array = clean(values, least=0)
    n = array.size
    if n < LEAST_TESTED:
        return False
    d = midranks(array) - (n + 1) / 2
    second, fourth = float(np.sum(d**2)), float(np.sum(d**4))
    if not second:
        return False
    pairs, triples = n * (n - 1), n * (n - 1) * (n - 2)
    of_squares = (n - 1) * (second**2 - fourth) / pairs
    of_neighbours = 2 * (n - 2) * (2 * fourth - second**2) / triples
    of_others = (n - 2) * (n - 3) * (3 * second**2 - 6 * fourth) / (triples * (n - 3))
    mean = -second / n
    deviation = math.sqrt(max(0.0, of_squares + of_neighbours + of_others - mean**2))
    return float(d[1:] @ d[:-1]) - mean > normal_quantile(1 - NORMAL_TAIL * level) * deviation


def sentence(values: Numbers, weights: Array, coverage: float = 1.0, *, series: int = 1) -> str:
    """Returns what the dependence did to an interval; empty unless a test at 5 % finds it.

    coverage: attained by the widest interval that the values allow. series: how many of them one
    result tells of; the test shares its 5 % among them.
    """
    rho, n = autocorrelation(weights), len(values)
    if rho < STATED_FROM or not is_dependent(values, 0.05 / series):
        return ""
    text = (
        f"{DEPENDENT} (autocorrelation about {rho:.1f}): {n} of them count as "
        f"{effective_n(n, weights):.0f}, for which the interval allows."
    )
    is_lower_bound = rho >= LOWER_BOUND_FROM or coverage < 0.9
    if n < STATED_N and not is_lower_bound:
        return ""
    if is_lower_bound:
        text += (
            f" {LOWER_BOUND} {n} repetitions cannot show how far values drift that depend so "
            "strongly on each other."
        )
    return text


@lru_cache(maxsize=1024)
def scales(n: int) -> Array:
    """Returns by how much each autocorrelation of `GRID` scales (mean - truth) / (s / sqrt(n)).

    Dependence raises the variance of the mean and lowers the one inside the sample.
    """
    raised = mean_inflation(n)
    return np.sqrt(raised / ((1 - raised / n) * n / (n - 1)))


def widening(n: int, weights: Array) -> Callable[[float], float]:
    """Returns, by confidence, the factor by which dependence widens the interval of n values.

    With one autocorrelation, which scales Student's t by c, the factor is c. With several it is the
    one of the best trade between the chance of a miss and the width relative to what each of them
    needs (Pratt 1961): the sum of w / c (f(F t / c) - f(t)) is zero, where f is the density of
    Student's t and t its quantile. Where one value of the autocorrelation is certain, the trade is
    the classical one. An interval that holds a share of the weights instead is several times as
    wide in the few samples that look dependent by chance.
    """
    c = scales(n)
    if n < 2 or weights[0] == 1:
        return lambda confidence: 1.0
    relative = weights / c
    tried = np.geomspace(1, c[-1], STEPS)

    @lru_cache(maxsize=256)
    def factor(confidence: float) -> float:
        square = student_quantile(n - 1, (1 + confidence) / 2) ** 2 / (n - 1)
        tails = np.log1p(square) - np.log1p((tried[:, None] / c) ** 2 * square)
        excess = np.expm1(n / 2 * tails) @ relative
        # It falls with the factor, and is zero or more at 1.
        return float(np.interp(0.0, -excess, tried))

    return factor


def allowed(n: int, factor: float) -> Array:
    """Returns the weights of the one autocorrelation for which a widening of n values allows."""
    rho = float(np.interp(factor, scales(n), GRID))
    place = rho / GRID[1]
    weights = np.maximum(0.0, 1 - np.abs(np.arange(GRID.size) - place))
    return np.asarray(weights / weights.sum())


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


def widening_of_difference(share: float, factors: Sequence[float]) -> float:
    """Returns the factor for the difference of two means, given those of both (`widening`).

    share: `share_of_variance`.
    """
    return math.sqrt(share * factors[0] ** 2 + (1 - share) * factors[1] ** 2)


def normal_orthant(z: float, correlation: Array) -> Array:
    """Returns P(X <= z and Y <= z) - P(X <= z)^2 of standard normal X, Y of this correlation."""
    steps = 32
    angles = np.arcsin(correlation)
    middle = (np.arange(steps) + 0.5) / steps
    inside = np.exp(-(z**2) / (1 + np.sin(angles[..., None] * middle)))
    return np.asarray(angles * inside.mean(axis=-1) / (2 * math.pi))
