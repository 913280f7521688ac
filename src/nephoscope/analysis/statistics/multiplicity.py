"""Adjusts p-values for the number of questions asked in one report. Source: Holm 1979."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nephoscope.analysis.statistics.values import Refused, clean


def holm(ps: Sequence[float]) -> list[float]:
    """Adjusted p-values in the order given: (0.01, 0.04, 0.03) gives (0.03, 0.06, 0.06)."""
    array = clean(ps, least=0)
    if np.any((array < 0) | (array > 1)):
        raise Refused("A p-value lies outside 0 … 1.")
    order = np.argsort(array, kind="stable")
    steps = array[order] * np.arange(array.size, 0, -1)
    adjusted = np.empty_like(array)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return [float(p) for p in adjusted]
