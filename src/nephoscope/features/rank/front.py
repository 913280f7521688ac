"""The Pareto front of a ranking: alternatives that no other one beats without losing somewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nephoscope.features.rank.rows import RankRow
from nephoscope.features.rank.standing import DIGITS, Standing
from nephoscope.stats.statistics.values import Array

Flags = NDArray[np.bool_]
Places = NDArray[np.intp]


def pareto_front(rows: Sequence[RankRow], names: Sequence[str], confidence: float) -> set[str]:
    """Returns the alternatives that no other one beats in a row without losing in another.

    A difference counts where it counts for the ranks: where it is tested, beyond its interval. A
    gap beats nobody, and a value beats a gap nowhere.
    """
    columns = [(row.standing(confidence), _places(row, names)) for row in rows]
    # Rivals that beat many come first; the order changes no result.
    order = np.argsort(sum((_rank(standing, at) for standing, at in columns), np.zeros(len(names))))
    front = np.arange(len(names))
    beaten = np.zeros(len(names), bool)
    # Without intervals, who is beaten beats nobody whom its own rival does not beat.
    by_values = not any(standing.tested for standing, _ in columns)
    for rival in order.tolist():
        if by_values and beaten[rival]:
            continue
        # Who beats the rival in a row is not beaten by it, and need not be compared any further.
        places_left, better = np.arange(len(front)), np.zeros(len(front), bool)
        for standing, places in columns:
            if not places_left.size:
                break
            wins, loses = _compare(standing, places[rival], places[front[places_left]])
            places_left, better = places_left[~loses], (better | wins)[~loses]
        out = places_left[better]
        if out.size:
            beaten[front[out]] = True
            front = np.delete(front, out)
    return {names[index] for index in front.tolist()}


def _places(row: RankRow, names: Sequence[str]) -> Places:
    """Where each alternative stands in a row; -1 for a gap."""
    at = {name: index for index, name in enumerate(row.lines)}
    return np.array([at.get(name, -1) for name in names])


def _rank(standing: Standing, places: Places) -> Array:
    return np.where(places < 0, len(places), standing.ranks[places]).astype(float)


def _compare(standing: Standing, rival: int, rivals: Places) -> tuple[Flags, Flags]:
    """Returns whom a rival beats in a row, and who beats it."""
    known = rivals >= 0
    if rival < 0:
        return np.zeros(len(rivals), bool), known
    shift = np.round(standing.costs[rivals] - standing.costs[rival], DIGITS)
    half = standing.half(rival, rivals)
    return known & (shift > half), known & (-shift > half)
