"""Modes of a sample: how many there are, and the gaps between them.

Silverman's test: the critical bandwidth is the smallest one at which a kernel density has at most k
modes; samples of that density, of the same variance, need a larger one in a share p of all cases.
Source: Silverman 1981, Using kernel density estimates to investigate multimodality.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEAST = 12
"""Values below which a second mode is not distinguished from randomness."""
_GRID = 512
_DRAWS = 200


def modes_at(values: Array, bandwidth: float) -> tuple[int, Array]:
    """Returns the number of modes of the kernel density, and the places of the minima between."""
    low, high = values.min() - 3 * bandwidth, values.max() + 3 * bandwidth
    counts, edges = np.histogram(values, _GRID, (low, high))
    grid = (edges[:-1] + edges[1:]) / 2
    reach = min(_GRID // 2, int(4 * bandwidth / (grid[1] - grid[0])) + 1)
    kernel = np.exp(-0.5 * ((grid[1] - grid[0]) * np.arange(-reach, reach + 1) / bandwidth) ** 2)
    # Ripples of rounding in the empty tails are no modes.
    density = np.round(np.convolve(counts, kernel, "same"), 9)
    slope = np.sign(np.diff(density))
    slope = slope[slope != 0]
    places = np.flatnonzero(np.sign(np.diff(density)) != 0)
    falls = np.flatnonzero((slope[:-1] < 0) & (slope[1:] > 0))
    return int(((slope[:-1] > 0) & (slope[1:] < 0)).sum()), grid[places[falls + 1]]


def critical_bandwidth(values: Array, modes: int) -> float:
    """Returns the smallest bandwidth at which the density has at most so many modes, to 1 %."""
    span = float(values.max() - values.min())
    low, high = span / 200, span
    while high / low > 1.01:
        middle = (low * high) ** 0.5
        if modes_at(values, middle)[0] <= modes:
            high = middle
        else:
            low = middle
    return high


def p_of_modes(values: Array, modes: int, *, seed: int = 1, draws: int = _DRAWS) -> float:
    """Returns p of the hypothesis that the density has at most so many modes."""
    bandwidth = critical_bandwidth(values, modes)
    rng = np.random.default_rng(seed)
    variance = float(values.var())
    shrink = 1 / np.sqrt(1 + bandwidth**2 / variance) if variance else 1.0
    centre = float(values.mean())
    more = 0
    for _ in range(draws):
        drawn = rng.choice(values, values.size) + bandwidth * rng.standard_normal(values.size)
        more += modes_at(centre + shrink * (drawn - centre), bandwidth)[0] > modes
    return (more + 1) / (draws + 1)


def gaps(values: Array, *, alpha: float = 0.05, most: int = 4) -> tuple[Array, float | None]:
    """Returns the minima between modes, none for one mode, and p of one mode; None for few values.

    The number of modes is the smallest that is not rejected.
    """
    if values.size < LEAST or values.max() <= values.min():
        return np.array([]), None
    first: float | None = None
    for modes in range(1, most + 1):
        p = p_of_modes(values, modes)
        first = p if first is None else first
        if p >= alpha or modes == most:
            return modes_at(values, critical_bandwidth(values, modes))[1], first
    raise AssertionError
