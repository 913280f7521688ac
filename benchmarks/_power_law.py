"""A cost by the number of samples as a power law, and its check by a larger store."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import t as student

CONFIDENCE = 0.95
LARGE = (1e10, 1e11, 1e12)
"""Numbers of samples beyond 10^9 of which the cost is predicted."""


def fitted(
    samples: Sequence[float], costs: Sequence[float], check: tuple[float, float] | None = None
) -> dict[str, Any]:
    """Returns the law factor · samples^exponent of costs, each of a store of its own.

    The intervals are those of ordinary regression of logarithms at 95 % confidence: Student's t on
    n - 2 degrees of freedom; of a prediction, that of one more store. Each is [value, low, high].
    check: samples and cost of a store that is not fitted. ratio: measured over predicted.
    """
    x, y = np.log10(samples), np.log10(costs)
    n, mean = x.size, float(x.mean())
    spread = float(((x - mean) ** 2).sum())
    exponent = float(((x - mean) * y).sum()) / spread
    level = float(y.mean()) - exponent * mean
    residual = math.sqrt(float(((y - level - exponent * x) ** 2).sum()) / (n - 2))
    quantile = float(student.ppf((1 + CONFIDENCE) / 2, n - 2))
    half = quantile * residual / math.sqrt(spread)

    def predicted(size: float) -> list[float]:
        at = math.log10(size)
        wide = quantile * residual * math.sqrt(1 + 1 / n + (at - mean) ** 2 / spread)
        return [10 ** (level + exponent * at + step) for step in (0.0, -wide, wide)]

    fit: dict[str, Any] = {
        "n": n,
        "exponent": [exponent, exponent - half, exponent + half],
        "factor": 10**level,
        "per_1e9": predicted(1e9),
        "predicted": {f"{size:.0e}": predicted(size) for size in LARGE},
    }
    if check is not None:
        size, cost = check
        value, low, high = predicted(size)
        fit["check"] = {
            "samples": size,
            "measured": cost,
            "predicted": [value, low, high],
            "is_inside": low <= cost <= high,
            "ratio": cost / value,
        }
    return fit
