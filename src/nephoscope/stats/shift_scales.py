"""Two samples on a scale of shifts, and the way back to the ratio b / a.

Logarithms turn a ratio into a shift, whatever was measured, a rate or a time; timeouts (+inf) rank
above everything seen and tie with each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass
from nephoscope.stats.statistics.reach import NOT_ENOUGH
from nephoscope.stats.statistics.values import Array, all_equal
from nephoscope.stats.verdicts import NO_BAND, Band

CENSORED = 1e6
"""Stands for "longer than everything seen" on the scale of shifts; told as infinite."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Both sides on a scale of shifts, and the way back from a shift to the ratio b / a."""

    a: Array
    b: Array
    to_ratio: Callable[[float], float]
    to_shift: Callable[[float], float]
    words: str
    reach: float = CENSORED

    def band(self, low: float | None, high: float | None) -> Band:
        """The interval of shifts as one of ratios, open where there is none."""
        if low is None or high is None:
            return NO_BAND
        return Band(self.ratio(low), self.ratio(high))

    def ratio(self, shift: float) -> float:
        """The ratio b / a of a shift; a shift that only a timeout can make is 0 or infinite."""
        if abs(shift) > self.reach / 4:  # a quarter: the middle of two values may hold one
            return math.inf if shift > 0 else 0.0
        return self.to_ratio(shift)


def scale_of(a: Array, b: Array) -> Scale | None:
    """Logarithms where all is above zero, else shares of A's median; None where that is zero."""
    values = np.concatenate([a, b])
    top = float(np.max(values[np.isfinite(values)], initial=0.0))
    if np.all(values > 0):
        # Timeouts rank above all, and tie with each other.
        x, y = (np.where(np.isinf(v), math.log(top or 1) + CENSORED, np.log(v)) for v in (a, b))
        return Scale(x, y, math.exp, math.log, "of logarithms")
    middle = abs(float(np.median(a)))
    if middle == 0 and all_equal(values):
        middle = 1.0  # nothing but zeros: the ratio is taken as 1
    if middle == 0 or math.isinf(middle):
        return None
    reach = max(1.0, float(np.max(np.abs(values[np.isfinite(values)]))) / middle) * CENSORED
    x, y = (np.where(np.isinf(v), reach, v / middle) for v in (a, b))
    words = "of shares of A's median, which is taken as known"
    return Scale(x, y, lambda s: max(0.0, 1 + s), lambda r: r - 1, words, reach)


def band_estimate(
    value: float, band: Band, confidence: float, n: int, method: str
) -> Estimate | None:
    """A ratio with its interval as an Estimate; None when the ratio itself is infinite."""
    if not math.isfinite(value):
        return None
    if band == NO_BAND:
        note = f"n = {n}: {NOT_ENOUGH}."
        return Estimate(value, None, None, confidence, n, "ratio", method, note)
    high = band.high if math.isfinite(band.high) else None
    note = "" if high is not None else "The upper bound lies beyond the timeout."
    return Estimate(value, band.low, high, confidence, n, "ratio", method, note)
