"""Ranks of alternatives with intervals that hold for all of them together.

Every pair is compared at a level that is divided by the number of pairs. An alternative's rank lies
between 1 plus the number of alternatives that are better and the number of all minus that of those
that are worse. Ranks, intervals, ratios and probabilities of one ranking come from one `Standing`,
so that they cannot contradict each other.
Sources: Goldstein & Spiegelhalter 1996; Klein, Wright & Wieczorek 2020; Mogstad, Romano, Shaikh &
Wilhelm 2024, Inference for ranks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nephoscope.core.model import Estimate
from nephoscope.stats.statistics.values import Array

DRAWS = 10_000
MAX_DRAWN = 10_000_000
"""Costs that are drawn for the probabilities of one standing; more alternatives get fewer draws."""
BLOCK = 64
DIGITS = 12
"""Of logarithms of costs; values that agree so far are equal."""
SMALLEST = 0.5 * 10.0**-DIGITS


@dataclass(frozen=True, eq=False)
class PairErrors:
    """Standard errors of the logarithms of ratios, by pair; shape (k, k).

    error: infinite where a pair was not tested. df: degrees of freedom. p: of comparisons that have
    a test of their own; 0 elsewhere.
    """

    error: Array
    df: Array
    p: Array

    def take(self, index: Sequence[int]) -> PairErrors:
        """Returns the errors of some alternatives."""
        at = np.ix_(index, index)
        return PairErrors(self.error[at], self.df[at], self.p[at])

    def own(self) -> Array:
        """Returns the error of each alternative that those of all pairs imply.

        Least squares of error(a, b)² = s(a)² + s(b)²; with two alternatives both have the same.
        """
        squares = self.error**2
        k = len(squares)
        sums = squares.sum(axis=1)
        if k < 3 or not np.all(np.isfinite(sums)):
            return np.asarray(np.sqrt(sums / 2))
        total = float(squares.sum()) / 2 / (k - 1)
        return np.asarray(np.sqrt(np.maximum(0.0, (sums - total) / (k - 2))))

    def own_df(self) -> Array:
        """Returns the degrees of freedom of each alternative's error."""
        return np.asarray(np.min(self.df, axis=1))

    def half(self, costs: Array, tail: float) -> Array:
        """Returns the half width of the interval of each pair's shift; tail: of each interval.

        Where a pair's own test finds no difference, the interval reaches to it.
        """
        half = np.full_like(self.error, np.inf)
        known = np.isfinite(self.error)
        half[known] = _quantiles(self.df[known], tail) * self.error[known]
        shift = np.abs(costs[None, :] - costs[:, None])
        return np.where(self.p > 2 * tail, np.maximum(half, shift), half)


@dataclass(frozen=True, eq=False)
class OwnErrors:
    """Standard errors of the logarithms of costs, by alternative; shape (k,).

    error: infinite where there are too few repetitions. The errors of two alternatives are
    independent, and their difference has the smaller of both degrees of freedom, which is never
    too many (Mickey & Brown 1966).
    """

    error: Array
    df: Array

    def take(self, index: Sequence[int]) -> OwnErrors:
        """Returns the errors of some alternatives."""
        return OwnErrors(self.error[index], self.df[index])

    def own(self) -> Array:
        """Returns the error of each alternative."""
        return self.error

    def own_df(self) -> Array:
        """Returns the degrees of freedom of each alternative's error."""
        return self.df

    def counts(self, costs: Array, quantiles: Array) -> tuple[Array, Array]:
        """Returns how many alternatives are better, and worse, than each.

        quantiles: of Student's t, of each alternative.
        """
        order = np.argsort(costs, kind="stable")
        y, v, squares = costs[order], self.error[order] ** 2, quantiles[order] ** 2
        common = bool(np.all(squares == squares[0]))
        better, worse = np.zeros(len(y), int), np.zeros(len(y), int)
        for start in range(0, len(y), BLOCK):
            rows = slice(start, start + BLOCK)
            shift = y[None, start:] - y[rows, None]
            limit = v[rows, None] + v[None, start:]
            limit *= squares[0] if common else np.maximum(squares[rows, None], squares[start:])
            # Costs are in order, so that no shift of a later column is below zero.
            apart = np.triu((shift * shift > limit) & (shift > SMALLEST), 1)
            better[start:] += apart.sum(axis=0)
            worse[rows] += apart.sum(axis=1)
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return better[back], worse[back]


Errors = PairErrors | OwnErrors


def _quantiles(df: Array, tail: float) -> Array:
    """Returns the upper quantile of Student's t at each number of degrees of freedom."""
    from scipy.special import stdtrit

    levels, back = np.unique(df, return_inverse=True)
    return np.asarray(-stdtrit(levels, tail)[back].reshape(df.shape))


def combined(
    parts: Sequence[Errors], weights: Sequence[float], groups: Sequence[str]
) -> Errors | None:
    """Returns the errors of a weighted sum of costs; None where one part has none.

    Errors within a group (one benchmark) add up, because one trial may have measured all of them;
    those of different groups are independent, and their degrees of freedom are Satterthwaite's.
    """
    used = [item for item in zip(parts, weights, groups, strict=True) if item[1] > 0]
    if not used:
        return None
    squares = np.zeros_like(used[0][0].error)
    fourth = np.zeros_like(squares)
    for group in dict.fromkeys(name for *_, name in used):
        own = [(part, weight) for part, weight, name in used if name == group]
        error = sum((weight * part.error for part, weight in own), np.zeros_like(squares))
        df = np.min([part.df for part, _ in own], axis=0)
        squares += error**2
        fourth += error**4 / df
    with np.errstate(invalid="ignore", divide="ignore"):
        pooled = np.where(fourth > 0, squares**2 / fourth, np.inf)
    least = np.min([part.df for part, *_ in used], axis=0)
    df = np.where(np.isfinite(pooled), np.maximum(pooled, least), least)
    if isinstance(used[0][0], PairErrors):
        return PairErrors(np.sqrt(squares), df, np.zeros_like(squares))
    return OwnErrors(np.sqrt(squares), df)


@dataclass(frozen=True, eq=False)
class Standing:
    """Alternatives in order of their costs.

    costs: natural logarithms, lower is better. errors: None where values have no interval, so that
    the order is that of the values. n: repetitions (the fewest).
    """

    names: tuple[str, ...]
    costs: Array
    errors: Errors | None
    confidence: float
    n: int = 0

    @property
    def tested(self) -> bool:
        """States whether differences were tested."""
        return self.errors is not None

    @cached_property
    def tail(self) -> float:
        """Returns the error of one direction of one pair (Bonferroni over all pairs)."""
        k = len(self.names)
        return (1 - self.confidence) / max(1, k * (k - 1))

    @cached_property
    def ranks(self) -> Array:
        """Returns 1 plus the number of alternatives with a lower cost; equal costs share a rank."""
        rounded = np.round(self.costs - self.costs.min(), DIGITS)
        return np.asarray(1 + np.searchsorted(np.sort(rounded), rounded, side="left"))

    @cached_property
    def _widths(self) -> Array:
        """Half widths of all pairs; of own errors the quantile of each alternative."""
        if isinstance(self.errors, PairErrors):
            return self.errors.half(self.costs, self.tail)
        assert self.errors is not None
        return _quantiles(self.errors.df, self.tail)

    def half(self, index: int, rivals: Any = slice(None)) -> Array:
        """Returns the half width of the interval of the shift between one alternative and rivals.

        The intervals hold for all pairs together. Infinite for pairs that were not tested; 0 where
        nothing was, so that every difference of the values counts.
        """
        if self.errors is None:
            return np.zeros_like(self.costs[rivals])
        if isinstance(self.errors, PairErrors):
            return np.asarray(self._widths[index, rivals])
        quantiles = np.maximum(self._widths[rivals], self._widths[index])
        return np.asarray(quantiles * np.hypot(self.errors.error[rivals], self.errors.error[index]))

    def half_one_sided(self, index: int) -> Array:
        """Returns the half widths of intervals of which one end is stated, for all pairs together.

        With the tails of both ends at one, that is the level of a test of equivalence.
        """
        level = 1 - 2 * (1 - self.confidence)
        return Standing(self.names, self.costs, self.errors, level, self.n).half(index)

    @cached_property
    def _bounds(self) -> tuple[Array, Array]:
        if self.errors is None:
            return self.ranks, self.ranks
        if isinstance(self.errors, PairErrors):
            shift = self.costs[None, :] - self.costs[:, None]
            apart = shift > np.maximum(self._widths, SMALLEST)
            better, worse = apart.sum(axis=0), apart.sum(axis=1)
        else:
            better, worse = self.errors.counts(self.costs, self._widths)
        return 1 + better, len(self.names) - worse

    @property
    def low(self) -> Array:
        """Returns the best rank of each alternative; its own rank where nothing was tested."""
        return self._bounds[0]

    @property
    def high(self) -> Array:
        """Returns the worst rank of each alternative; its own rank where nothing was tested."""
        return self._bounds[1]

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """Returns the positions of the alternatives from best to worst."""
        return np.argsort(np.round(self.costs - self.costs.min(), DIGITS), kind="stable")

    def ratios(self, index: int, method: str) -> list[Estimate]:
        """Returns the cost of each alternative relative to one of them."""
        shift, half = self.costs - self.costs[index], self.half(index).copy()
        half[index] = 0.0
        if self.errors is None:
            half[:] = np.inf
        value, low, high = (
            np.exp(shift),
            np.exp(shift - half),
            np.exp(np.minimum(shift + half, 700)),
        )
        columns = zip(value.tolist(), low.tolist(), high.tolist(), half.tolist(), strict=True)
        level, n, note = self.confidence, self.n, self.no_interval
        return [
            Estimate(ratio, least, most, level, n, "ratio", method)
            if math.isfinite(width)
            else Estimate(ratio, None, None, level, n, "ratio", method, note)
            for ratio, least, most, width in columns
        ]

    @property
    def no_interval(self) -> str:
        """Returns why a value has no interval."""
        sample_size = "one value each" if self.n == 1 else f"n = {self.n}"
        return f"No interval: {sample_size}; it needs 4 repetitions."

    def draws(self, seed: int) -> Array | None:
        """Returns costs that vary by their errors, shape (draws, k); None without errors."""
        if self.errors is None:
            return None
        own = self.errors.own()
        if not np.all(np.isfinite(own)):
            return None
        k = len(self.names)
        size = max(1000, min(DRAWS, MAX_DRAWN // k))
        rng = np.random.default_rng(seed)
        # The second term orders equal costs without errors (copies of one file) by chance.
        spread = rng.standard_t(self.errors.own_df(), (size, k)) * own
        return np.asarray(self.costs + spread + rng.uniform(0, 1e-9, (size, k)))

    def among_best(self, drawn: Array | None, top: int) -> list[float | None]:
        """Returns the probability that each alternative is among the best; None without errors.

        drawn: of `draws`. top: how many are the best. Where the rank interval decides, the
        probability is 0 or 1.
        """
        if drawn is None:
            return [None] * len(self.names)
        k = len(self.names)
        if top >= k:
            return [1.0] * k
        best = np.argpartition(drawn, top - 1, axis=1)[:, :top]
        share = np.bincount(best.ravel(), minlength=k) / len(drawn)
        share = np.where(self.low > top, 0.0, np.where(self.high <= top, 1.0, share))
        return [float(value) for value in share]
