"""What does a factor do on average over all the others? Main effects of a crossed experiment.

Within each round the logarithms of all cells with a level are averaged and held against those with
the reference level: drift between rounds, and all other factors, which stand equally often on both
sides of a full crossing or a regular fraction, cancel. Source: Box, Hunter & Hunter 2005, ch. 5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nephoscope.analysis.compare import MARGIN, Comparison, paired
from nephoscope.analysis.statistics.values import Refused
from nephoscope.model import Better

Level = Any
"""A JSON scalar."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of levels and its values: round -> value (> 0)."""

    levels: Mapping[str, Level]
    values: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Effect:
    """One level against the reference: `comparison.ratio` is level / reference, paired by round.

    cells: how many combinations stand on each side. rounds_left_out: rounds in which one of the
    cells has no value.
    """

    factor: str
    level: Level
    reference: Level
    comparison: Comparison
    cells: int
    rounds_left_out: int


def main_effect(
    cells: Sequence[Cell],
    factor: str,
    reference: Level,
    *,
    better: Better,
    margin: float = MARGIN,
    confidence: float = 0.95,
) -> list[Effect]:
    """The effect of each level of a factor but the reference, as a ratio of geometric means.

    Raises Refused where a cell has no values, where values are not above zero, and where the cells
    are not equally many at each level (the other factors would then not cancel).
    """
    by_level: dict[Level, list[Cell]] = {}
    for cell in cells:
        by_level.setdefault(cell.levels[factor], []).append(cell)
    if reference not in by_level or len(by_level) < 2:
        raise Refused(f"'{factor}' has no level other than {reference}.")
    if len({len(found) for found in by_level.values()}) > 1:
        raise Refused(f"The levels of '{factor}' are unbalanced, so effects would be confounded.")
    rounds = set.intersection(*(set(cell.values) for cell in cells))
    every = set().union(*(cell.values for cell in cells))
    if not rounds:
        raise Refused("No round has a value for every combination.")
    if any(not 0 < cell.values[r] < math.inf for cell in cells for r in rounds):
        raise Refused("A value is zero, negative or infinite, so it has no ratio.")
    ordered = sorted(rounds)
    means = {level: _means(found, ordered) for level, found in by_level.items()}
    effects = []
    for level, found in by_level.items():
        if level == reference:
            continue
        comparison = paired(
            means[reference],
            means[level],
            better=better,
            margin=margin,
            unit="ratio",
            confidence=confidence,
            names=(f"{factor}={reference}", f"{factor}={level}"),
        )
        left_out = len(every) - len(rounds)
        effects.append(Effect(factor, level, reference, comparison, len(found), left_out))
    return effects


def _means(cells: Sequence[Cell], rounds: Sequence[int]) -> list[float]:
    """Geometric mean over the cells, round by round."""
    return [
        math.exp(math.fsum(math.log(cell.values[r]) for cell in cells) / len(cells)) for r in rounds
    ]
