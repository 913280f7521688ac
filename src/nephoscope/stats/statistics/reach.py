"""No interval is told that reaches far beyond the data: too few repetitions make it, not the noise.

The one definition of *far*, and what is said instead of such an interval.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nephoscope.core.model import Estimate
from nephoscope.stats.statistics.values import Array

MOST_RANGES = 3.0
"""Width of an interval over the range of its data from which it says nothing any more. Student's t
of three values stays below it, that of two never does."""

NOT_ENOUGH = "not enough trials for an interval"


def range_of_differences(a: Array, b: Array) -> float:
    """Returns the range of all differences b - a."""
    return float(np.ptp(a) + np.ptp(b))


def range_of_ratios(a: Array, b: Array) -> float:
    """Returns the range of all ratios b / a; infinite where a can be zero."""
    if a.min() <= 0 <= a.max():
        return float("inf")
    quotients = np.divide.outer([b.min(), b.max()], [a.min(), a.max()])
    return float(np.ptp(quotients))


def is_too_wide(low: float | None, high: float | None, data_range: float) -> bool:
    """Returns whether an interval is more than MOST_RANGES times as wide as its data."""
    if low is None or high is None:
        return False
    return high - low > MOST_RANGES * data_range * (1 + 1e-9)


def without_wide_interval(estimate: Estimate, data_range: float) -> Estimate:
    """Returns the estimate; without its interval, and with the reason, where that is too wide.

    data_range: of the values, or of their differences or ratios: on the scale of the estimate.
    """
    noted = with_note_of_width(estimate, data_range)
    return noted if noted is estimate else replace(noted, low=None, high=None)


def with_note_of_width(estimate: Estimate, data_range: float) -> Estimate:
    """Returns the estimate; with the reason as its note where its interval is too wide.

    For estimates that others are computed from: without an interval they would count as exact.
    """
    if not is_too_wide(estimate.low, estimate.high, data_range):
        return estimate
    return replace(estimate, note=f"n = {estimate.n}: {NOT_ENOUGH}.")
