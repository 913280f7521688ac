"""Splits a short series into levels: a dozen to a thousand values, of unknown noise.

The split of the largest absolute t value is taken if so large a one is rare among permutations of
the series; then each part is split in turn (binary segmentation; Vostrikova 1981, with the
permutation test of Matteson & James, JASA 109, 2014). It assumes values that do not depend on each
other; `change_points` is for long series, whose noise it models.
"""

from __future__ import annotations

import numpy as np

from nephoscope.stats.statistics.values import Array

FEWEST = 10
"""Values that a series needs: of fewer no permutation is rarer than `FALSE_ALARMS`, both directions
counted: 2 / C(10, 5) is 0.8 %."""
FALSE_ALARMS = 0.01
"""Probability that a series of one level is split."""
_LEAST_SIDE = 2
_PERMUTATIONS = 1999
_SEED = 1
_TINY = 1e-9
"""Of the deviation of all values, as the noise of sides without any: equal values are no proof of
an infinite t value, whose size decides between two such splits."""


def level_starts(values: Array, smallest: float = 0.0) -> list[int]:
    """Returns the index of the first value of each level; the first one is 0.

    values: finite, in order of time. smallest: difference of the means of adjacent levels below
    which they are one, in the unit of the values.
    """
    starts = sorted(_starts(np.asarray(values, dtype=float), 0, smallest))
    return [0, *starts]


def _starts(values: Array, offset: int, smallest: float) -> list[int]:
    place = _split(values, smallest)
    if place is None:
        return []
    before = _starts(values[:place], offset, smallest)
    return [*before, offset + place, *_starts(values[place:], offset + place, smallest)]


def _split(values: Array, smallest: float) -> int | None:
    """Returns the index of the first value of the second level; None for one level."""
    if values.size < FEWEST or not np.ptp(values):
        return None
    scores = _scores(values[None, :])[0]
    place = int(np.argmax(scores))
    rng = np.random.default_rng(_SEED)
    shuffled = rng.permuted(np.tile(values, (_PERMUTATIONS, 1)), axis=1)
    reached = int((_scores(shuffled).max(axis=1) >= scores[place] * (1 - _TINY)).sum())
    place += _LEAST_SIDE
    size = abs(values[place:].mean() - values[:place].mean())
    is_rare = (1 + reached) / (1 + _PERMUTATIONS) <= FALSE_ALARMS
    return place if is_rare and size >= smallest else None


def _scores(rows: Array) -> Array:
    """Returns the absolute t values of each row's splits, from _LEAST_SIDE values a side on."""
    count = rows.shape[1]
    left = np.arange(_LEAST_SIDE, count - _LEAST_SIDE + 1)
    sums, squares = np.cumsum(rows, axis=1), np.cumsum(rows**2, axis=1)
    first, total = sums[:, left - 1], sums[:, -1:]
    right = count - left
    means = first / left, (total - first) / right
    within = squares[:, -1:] - left * means[0] ** 2 - right * means[1] ** 2
    floor = _TINY * rows.var(axis=1, keepdims=True) * count
    deviation = np.sqrt(np.maximum(within, floor) / (count - 2))
    scores: Array = np.abs(means[1] - means[0]) / (deviation * np.sqrt(1 / left + 1 / right))
    return scores
