"""Order statistics of the differences, or of the means, of all pairs of values without the pairs.

They are found by bisection. What an order statistic costs is in proportion to the values times a
logarithm: pairs are made only once an interval holds few of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nephoscope.stats.statistics.values import Array

STEPS = 100
"""Halvings of an interval; most end earlier, between two neighbouring numbers."""


class _Inside(NamedTuple):
    """Pairs within an interval, and how many lie up to its lower end."""

    a: Array
    b: Array
    below: int


class PairOrder:
    """k -> the k-th smallest quantity of all pairs (1-based), to rounding.

    a, b: ascending. partner: of values of `a` and a quantity x, the largest `b` of a pair up to x;
    it rises with x. low, high: of all quantities. rank: of x and the number of pairs (a, b) up to
    it, which k counts; that number itself by default.
    """

    def __init__(
        self,
        a: Array,
        b: Array,
        low: float,
        high: float,
        partner: Callable[[Array, float], Array],
        rank: Callable[[float, int], int] = lambda _, pairs: pairs,
    ) -> None:
        self._a, self._b, self._ends = a, b, (low, high)
        self._partner, self._rank = partner, rank
        self._few = a.size + b.size
        # The intervals of one comparison ask for thousands of order statistics, many side by side.
        self._pairs = lru_cache(maxsize=None)(self._pairs_up_to)
        self._inside = lru_cache(maxsize=8)(self._inside_of)

    def __call__(self, k: int) -> float:
        """Returns the smallest quantity that at least k pairs reach."""
        low, high = self._ends
        inside: _Inside | None = None
        for _ in range(STEPS):
            middle = low + (high - low) / 2
            if not low < middle < high:
                break
            if inside is None and self._pairs(high) - self._pairs(low) <= self._few:
                inside = self._inside(low, high)
            if inside is None:
                is_reached = self._rank(middle, self._pairs(middle)) >= k
            else:
                up_to = inside.b <= self._partner(inside.a, middle)
                pairs = inside.below + int(np.count_nonzero(up_to))
                is_reached = self._rank(middle, pairs) >= k
                left = up_to if is_reached else ~up_to
                below = inside.below if is_reached else pairs
                inside = _Inside(inside.a[left], inside.b[left], below)
            low, high = (low, middle) if is_reached else (middle, high)
        return high

    def _ends_of_rows(self, x: float) -> NDArray[np.intp]:
        """How many of `b` pair with each of `a` up to x."""
        return np.searchsorted(self._b, self._partner(self._a, x), side="right")

    def _pairs_up_to(self, x: float) -> int:
        return int(self._ends_of_rows(x).sum())

    def _inside_of(self, low: float, high: float) -> _Inside:
        first, end = self._ends_of_rows(low), self._ends_of_rows(high)
        sizes = end - first
        rows = np.repeat(np.arange(sizes.size), sizes)
        before = np.cumsum(sizes) - sizes
        columns = np.arange(rows.size) - before[rows] + first[rows]
        return _Inside(self._a[rows], self._b[columns], int(first.sum()))


def order_of_differences(a: Array, b: Array) -> PairOrder:
    """Returns the order statistics of all b - a; both ascending."""
    return PairOrder(a, b, float(b[0] - a[-1]), float(b[-1] - a[0]), lambda own, x: own + x)


def order_of_means(d: Array) -> PairOrder:
    """Returns the order statistics of all (d_i + d_j) / 2 with i <= j; d ascending."""

    def rank(x: float, pairs: int) -> int:
        return (pairs + int(np.searchsorted(d, x, side="right"))) // 2

    return PairOrder(d, d, float(d[0]), float(d[-1]), lambda own, x: 2 * x - own, rank)
