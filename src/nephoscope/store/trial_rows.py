"""Rows of queries: one for each trial and metric."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nephoscope.core.records import dataclass

Values = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TrialMetric:
    """A metric of one trial. factors: canonical JSON text (model.factors_key)."""

    benchmark: str
    metric: str
    target: str
    factors: str
    unit: str
    better: str
    trial: str
    round: int


@dataclass(frozen=True, slots=True)
class TrialValue(TrialMetric):
    """One value of a scalar metric for one trial: the median of the trial's samples."""

    value: float


@dataclass(frozen=True, slots=True, eq=False)
class TrialHistogram(TrialMetric):
    """One histogram of one trial; values ascend, counts[i] belongs to values[i]."""

    values: Values
    counts: Integers


@dataclass(frozen=True, slots=True)
class SeriesPoint(TrialMetric):
    """One event or reading in time of one trial; at_ns since the trial began."""

    at_ns: int
    value: float
    count: int
