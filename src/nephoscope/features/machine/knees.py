"""Where are the levels of memory, by what the ladder of vector lengths shows?

The data find the knees; the sizes that the processor tells only name them. A virtual machine often
hides the last-level cache, or tells one of which it owns a slice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from nephoscope.results.machine_figures import Knee
from nephoscope.stats.statistics.values import Array, Refused, finite

LEAST_STEP = math.log(1.12)
"""Neighbouring plateaus closer than 12 % are one: ladders of one cache slope by as much."""
LEAST_POINTS = 2
"""A plateau has two lengths at least; single ones between two plateaus are the slope."""
NOISE_FLOOR = 0.01
NAME_FACTOR = 2.0
ORDER = ("L1", "L2", "L3", "L4")


def knees(
    lengths_bytes: Sequence[float],
    values: Sequence[float],
    *,
    higher_is_better: bool,
    cache_sizes: Mapping[str, int],
) -> list[Knee]:
    """Plateaus of a bandwidth (higher_is_better) or latency ladder.

    lengths_bytes, values: one point a length, any order, > 0. cache_sizes: 'L1d' or 'L1', 'L2',
    'L3' -> bytes of one such cache, as far as known; may be empty or wrong. A plateau is named
    after a cache when its last length lies within a factor 2 of that size, and RAM when it follows
    the largest known cache and that is an L3. When all caches are known and the ladder climbs well
    beyond them, the other plateaus are named after the smallest cache that holds them (a shared
    cache often ends early), and plateaus of one cache count as one. Steps the wrong way (a longer
    vector is faster) are no knees. Fewer than 4 lengths give one unnamed plateau.
    Method: least squares of piecewise constants on log values by dynamic programming; the number
    of steps by a BIC penalty with the noise taken from the differences of neighbours.
    """
    length = finite(lengths_bytes, statistic="ladder")
    value = finite(values, statistic="ladder")
    if length.size != value.size:
        raise Refused(f"{length.size} lengths but {value.size} values: not a ladder.")
    if np.any(length <= 0) or np.any(value <= 0):
        raise Refused("A ladder has lengths and values above zero only.")
    order = np.argsort(length, kind="stable")
    length, value = length[order], value[order]
    slower = -np.log(value) if higher_is_better else np.log(value)  # rises with every level
    parts = _plateaus(slower, _segments(slower))
    known = _known(cache_sizes)
    names = _names([float(length[last - 1]) for _, last in parts], known)
    if _reaches_memory(known, float(length[-1])):
        names = _by_what_holds_them(names, [float(length[last - 1]) for _, last in parts], known)
        names, parts = _joined(names, parts)
    return [
        # The median on the logarithmic scale, on which the plateaus were found and ordered.
        Knee(
            name,
            int(length[first]),
            int(length[last - 1]),
            float(np.exp(np.median(np.log(value[first:last])))),
        )
        for name, (first, last) in zip(names, parts, strict=True)
    ]


def _noise(y: Array) -> float:
    """Standard deviation of one point, from differences of neighbours that are no steps.

    The lower half of the absolute differences is used: on a ladder of 15 points, three levels and
    their slopes make up to half of all differences.
    """
    steps = np.sort(np.abs(np.diff(y)))
    if not steps.size:
        return NOISE_FLOOR
    # The lower quartile of |N(0, 2 s^2)| is 0.3186 * sqrt(2) s.
    quartile = float(steps[(steps.size - 1) // 4])
    return max(NOISE_FLOOR, quartile / (0.3186 * math.sqrt(2)))


def _segments(y: Array) -> list[tuple[int, int]]:
    """Half-open index ranges of the best piecewise-constant fit."""
    n = y.size
    penalty = 3 * math.log(max(n, 2)) * _noise(y) ** 2  # level, place and side of each step
    sums, squares = np.append(0.0, np.cumsum(y)), np.append(0.0, np.cumsum(y**2))
    best, back = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=int)
    best[0] = -penalty
    for end in range(1, n + 1):
        starts = np.arange(end)
        size = end - starts
        cost = squares[end] - squares[starts] - (sums[end] - sums[starts]) ** 2 / size
        total = best[starts] + np.maximum(cost, 0.0) + penalty
        back[end] = int(np.argmin(total))
        best[end] = total[back[end]]
    plateaus, end = [], n
    while end > 0:
        plateaus.append((int(back[end]), end))
        end = int(back[end])
    return plateaus[::-1]


def _plateaus(y: Array, segments: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Segments that are levels: merged where the step is small or backward, slopes left out."""

    def level(part: tuple[int, int]) -> float:
        return float(np.median(y[part[0] : part[1]]))

    merged = _merge(segments, level)
    long = [part for part in merged if part[1] - part[0] >= LEAST_POINTS]
    return _merge(long, level) or [(0, y.size)]


def _merge(
    parts: list[tuple[int, int]], level: Callable[[tuple[int, int]], float]
) -> list[tuple[int, int]]:
    knees: list[tuple[int, int]] = []
    for part in parts:
        knees.append(part)
        while len(knees) > 1 and level(knees[-1]) - level(knees[-2]) < LEAST_STEP:
            last = knees.pop()
            knees[-1] = (knees[-1][0], last[1])
    return knees


def _known(cache_sizes: Mapping[str, int]) -> list[tuple[str, float]]:
    """Caches by level; instruction caches and sizes of zero say nothing here."""
    sizes = {name.upper().removesuffix("D"): size for name, size in cache_sizes.items()}
    return [(name, float(sizes[name])) for name in ORDER if sizes.get(name, 0) > 0]


def _names(last_lengths: list[float], known: list[tuple[str, float]]) -> list[str]:
    """Names in order: each cache names the nearest unnamed plateau within a factor 2."""
    names = [f"level {i + 1}" for i in range(len(last_lengths))]
    begin = 0
    for cache, size in known:
        near = [
            (abs(math.log(last_lengths[i] / size)), i) for i in range(begin, len(last_lengths) - 1)
        ]
        if near and min(near)[0] <= math.log(NAME_FACTOR) + 1e-9:
            at = min(near)[1]
            names[at], begin = cache, at + 1
    largest = known[-1][0] if known else ""
    if largest in {"L3", "L4"} and len(names) > 1 and names[-2] == largest:
        names[-1] = "RAM"
    return names


BEYOND_FACTOR = 1.5
"""A ladder that climbs this far above the last cache has memory at its end."""


def _reaches_memory(known: list[tuple[str, float]], longest: float) -> bool:
    """Returns whether every cache down to an L3 is known and the ladder ends well beyond the
    last."""
    names = tuple(name for name, _ in known)
    whole = len(names) >= 3 and names == ORDER[: len(names)]
    return whole and longest > BEYOND_FACTOR * known[-1][1]


def _by_what_holds_them(
    names: list[str], last_lengths: list[float], known: list[tuple[str, float]]
) -> list[str]:
    """Fills in the unnamed: the smallest cache that holds the plateau's last length, else RAM."""
    levels: list[str] = []
    order = [name for name, _ in known] + ["RAM"]
    least = 0
    for name, length in zip(names, last_lengths, strict=True):
        if name not in order:
            holding = [cache for cache, size in known if length <= size]
            name = holding[0] if holding else "RAM"
        # A longer vector cannot lie in a smaller cache.
        least = max(least, order.index(name))
        levels.append(order[least])
    return levels


def _joined(
    names: list[str], parts: list[tuple[int, int]]
) -> tuple[list[str], list[tuple[int, int]]]:
    """Neighbouring plateaus of one name as one."""
    levels: list[str] = []
    joined: list[tuple[int, int]] = []
    for name, part in zip(names, parts, strict=True):
        if levels and levels[-1] == name:
            joined[-1] = (joined[-1][0], part[1])
        else:
            levels.append(name)
            joined.append(part)
    return levels, joined
