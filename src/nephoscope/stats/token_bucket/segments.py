"""Plateaus of a noisy series: where its level steps, at least squares for each step's price."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from nephoscope.core.records import dataclass
from nephoscope.stats.statistics.values import Array

MOST_POINTS = 1200
"""Points that are segmented; of longer series, medians of as many groups."""
_TO_SIGMA = 1.4826
_PRICE = 4.0
"""Price of a step, in variances of the noise times the logarithm of the number of points."""
_CLIP = 4.0
"""Standard deviations from its neighbours beyond which a point is an outlier."""
_FLOOR = 1e-3
"""Least noise, relative to the level: counters have a resolution."""


@dataclass(frozen=True, slots=True)
class Plateau:
    """Points first (inclusive) to last (exclusive) of one level. width: number of points."""

    first: int
    last: int
    level: float

    @property
    def width(self) -> int:
        """Number of points."""
        return self.last - self.first


def noise_of(values: Array) -> float:
    """Returns the standard deviation of the noise about a level that steps now and then."""
    if values.size < 3:
        return _FLOOR * float(np.abs(values).max(initial=0.0))
    differences = np.abs(np.diff(values))
    sigma = _TO_SIGMA * float(np.median(differences)) / np.sqrt(2)
    return float(max(sigma, _FLOOR * np.median(np.abs(values))))


def without_outliers(values: Array, sigma: float) -> Array:
    """Returns the values; those far from the median of the five about them are that median."""
    if values.size < 7:
        return values
    padded = np.pad(values, 2, mode="edge")
    middle = np.median(np.lib.stride_tricks.sliding_window_view(padded, 5), axis=1)
    return np.where(np.abs(values - middle) > _CLIP * sigma, middle, values)


def plateaus(values: Array, sigma: float, least: int) -> list[Plateau]:
    """Returns the plateaus of a series in order. least: points of the shortest.

    Optimal partition by dynamic programming: the squares about the levels plus a price for each.
    """
    n = values.size
    least = max(1, min(least, n))
    sums = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values**2)])
    price = _PRICE * sigma**2 * np.log(max(n, 3))
    best = np.full(n + 1, np.inf)
    best[0] = -price
    before = np.zeros(n + 1, dtype=int)
    for end in range(least, n + 1):
        start = np.arange(0, end - least + 1)
        length = end - start
        total = sums[end] - sums[start]
        cost = best[start] + squares[end] - squares[start] - total**2 / length + price
        before[end] = int(np.argmin(cost))
        best[end] = cost[before[end]]
    plateaus: list[Plateau] = []
    end = n
    while end > 0:
        begin = int(before[end])
        plateaus.append(Plateau(begin, end, float(np.median(values[begin:end]))))
        end = begin
    return plateaus[::-1]


def merged(parts: list[Plateau], values: Array, least_step: float) -> list[Plateau]:
    """Returns plateaus of which neighbours differ by a step of at least this size."""
    parts = list(parts)
    while len(parts) > 1:
        steps = [abs(b.level - a.level) for a, b in pairwise(parts)]
        at = int(np.argmin(steps))
        if steps[at] >= least_step:
            break
        first, last = parts[at].first, parts[at + 1].last
        parts[at : at + 2] = [Plateau(first, last, float(np.median(values[first:last])))]
    return parts


def thinned(at_s: Array, values: Array, most: int = MOST_POINTS) -> tuple[Array, Array, int]:
    """Returns times and values of at most so many points, and how many each is the median of."""
    group = -(-values.size // most)
    if group == 1:
        return at_s, values, 1
    size = values.size // group * group
    return (
        at_s[:size].reshape(-1, group)[:, 0],
        np.median(values[:size].reshape(-1, group), axis=1),
        group,
    )
