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

import numpy as np

from nephoscope.core.grouping import group_by
from nephoscope.core.model import Better
from nephoscope.core.naming import level_text
from nephoscope.stats.compare import MARGIN, TwoSampleComparison, paired, round_shifts
from nephoscope.stats.statistics.dependence import ASSUMED
from nephoscope.stats.statistics.values import Array, Refused

Level = Any
"""A JSON scalar."""


@dataclass(frozen=True, slots=True)
class DesignCell:
    """One combination of levels and its values: round -> value (> 0)."""

    levels: Mapping[str, Level]
    values: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class LevelEffect:
    """One level against the reference: `comparison.ratio` is level / reference, paired by round.

    cells: how many combinations stand on each side. rounds_left_out: rounds in which one of the
    cells has no value.
    """

    factor: str
    level: Level
    reference: Level
    comparison: TwoSampleComparison
    cells: int
    rounds_left_out: int


@dataclass(frozen=True, slots=True)
class Contrast:
    """The geometric means of a level and of the reference, round by round; see `LevelEffect`."""

    factor: str
    level: Level
    reference: Level
    of_level: Array
    of_reference: Array
    cells: int
    rounds_left_out: int

    @property
    def shifts(self) -> Array:
        """Returns what the effect is judged by, round by round."""
        return round_shifts(self.of_reference, self.of_level)

    def effect(
        self,
        *,
        better: Better,
        margin: float = MARGIN,
        confidence: float = 0.95,
        prior: Array = ASSUMED,
    ) -> LevelEffect:
        """Returns the effect as a ratio. prior: of the autocorrelation of the rounds."""
        comparison = paired(
            self.of_reference,
            self.of_level,
            better=better,
            margin=margin,
            unit="ratio",
            confidence=confidence,
            names=(level_text(self.factor, self.reference), level_text(self.factor, self.level)),
            prior=prior,
        )
        return LevelEffect(
            self.factor, self.level, self.reference, comparison, self.cells, self.rounds_left_out
        )


def contrasts(cells: Sequence[DesignCell], factor: str, reference: Level) -> list[Contrast]:
    """Returns each level of a factor but the reference, to be held against it.

    Raises Refused where a cell has no values, where values are not above zero, and where the cells
    are not equally many at each level (the other factors would then not cancel).
    """
    by_level = group_by(cells, lambda cell: cell.levels[factor])
    if reference not in by_level or len(by_level) < 2:
        raise Refused(f"'{factor}' has no level other than {reference}.")
    if len({len(means_of) for means_of in by_level.values()}) > 1:
        raise Refused(f"The levels of '{factor}' are unbalanced, so effects would be confounded.")
    rounds = set.intersection(*(set(cell.values) for cell in cells))
    every = set().union(*(cell.values for cell in cells))
    if not rounds:
        raise Refused("No round has a value for every combination.")
    if any(not 0 < cell.values[r] < math.inf for cell in cells for r in rounds):
        raise Refused("A value is zero, negative or infinite, so it has no ratio.")
    ordered = sorted(rounds)
    means = {level: _means(means_of, ordered) for level, means_of in by_level.items()}
    left_out = len(every) - len(rounds)
    return [
        Contrast(factor, level, reference, means[level], means[reference], len(means_of), left_out)
        for level, means_of in by_level.items()
        if level != reference
    ]


def _means(cells: Sequence[DesignCell], rounds: Sequence[int]) -> Array:
    """Geometric mean over the cells, round by round."""
    sums = [math.fsum(math.log(cell.values[r]) for cell in cells) for r in rounds]
    return np.array([math.exp(total / len(cells)) for total in sums])
