"""Finds changes of the noise of a series: its values vary more, or less, than before.

Distances from the level, as normal scores of their ranks, are themselves a series, whose steps are
changes of the noise. They are tested as the levels are, so that a noise that is larger at certain
hours of the day is no change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from nephoscope.core.records import dataclass
from nephoscope.stats.change_points import detection
from nephoscope.stats.change_points.detection import DetectedStep
from nephoscope.stats.statistics.values import Array

SMALLEST_RATIO = 1.5
"""Ratio of two standard deviations from which on a change of noise is reported."""
_CLIP = 3.0
"""Robust standard deviations beyond which a distance counts as one of that size."""
_ROBUST_SD = 1.4826
_SIDE_POINTS = 200
_Z = 1.959964


@dataclass(frozen=True, slots=True)
class DetectedNoise:
    """A change of noise. step: its place. before, behind: standard deviations without outliers.
    low, high: interval of their ratio (95 %)."""

    step: DetectedStep
    before: float
    behind: float
    low: float
    high: float


def detect(
    at_s: Array, values: Array, levels: Sequence[int], *, false_alarms: float
) -> list[DetectedNoise]:
    """Returns the changes of noise in order of time.

    levels: indices at which the level of the values changes. The other arguments are those of
    `detection.detect`.
    """
    rest = np.concatenate(
        [part - np.median(part) for part in np.split(values, sorted(levels)) if part.size]
        or [values]
    )
    ranks = np.argsort(np.argsort(np.abs(rest), kind="stable"), kind="stable") + 1
    scores = special.ndtri(ranks / (rest.size + 1))
    steps = detection.detect(at_s, scores, false_alarms=false_alarms)
    ends = [0, *(step.index for step in steps), rest.size]
    out = []
    for place, step in enumerate(steps):
        sides = (
            rest[max(ends[place], step.index - _SIDE_POINTS) : step.index],
            rest[step.index : min(ends[place + 2], step.index + _SIDE_POINTS)],
        )
        (before, first), (behind, second) = map(_spread, sides)
        if min(before, behind) <= 0:
            continue
        if max(before, behind) < SMALLEST_RATIO * min(before, behind):
            continue
        factor = math.exp(_Z * math.sqrt(first + second))
        ratio = behind / before
        out.append(DetectedNoise(step, before, behind, ratio / factor, ratio * factor))
    return out


def _spread(side: Array) -> tuple[float, float]:
    """Returns the standard deviation of clipped distances, and the variance of its logarithm."""
    if side.size < 2:
        return 0.0, 0.0
    limit = _CLIP * _ROBUST_SD * float(np.median(np.abs(side)))
    clipped = np.clip(side, -limit, limit)
    variance = float(np.mean(clipped**2))
    if variance <= 0:
        return 0.0, 0.0
    kurtosis = float(np.mean(clipped**4)) / variance**2
    return math.sqrt(variance), (kurtosis - 1) / (4 * side.size)
