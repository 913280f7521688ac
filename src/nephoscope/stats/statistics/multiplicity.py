"""Adjusts p-values for the number of questions asked in one report. Source: Holm 1979.

The weighted form gives the questions that matter most a larger part of the error rate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nephoscope.stats.statistics.values import Refused, clean


def holm(ps: Sequence[float], weights: Sequence[float] | None = None) -> list[float]:
    """Adjusted p-values in the order given: (0.01, 0.04, 0.03) gives (0.03, 0.06, 0.06).

    weights: above zero, the part of the error rate of each; equal unless given.
    """
    array = clean(ps, least=0)
    if np.any((array < 0) | (array > 1)):
        raise Refused("A p-value lies outside 0 … 1.")
    parts = np.ones(array.size) if weights is None else clean(weights, least=0)
    order = np.argsort(array / parts, kind="stable")
    left = np.cumsum(parts[order][::-1])[::-1]
    steps = array[order] / parts[order] * left
    adjusted = np.empty_like(array)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return [float(p) for p in adjusted]
