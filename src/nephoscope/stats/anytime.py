"""An interval that holds however often one looks, so that measuring may end once it decides.

The confidence sequence of the mean of independent values of unknown variance: the prior of the
mean in standard deviations is normal with the variance 1 / `PRIOR_N`, that of the standard
deviation is 1 / s. Over all n together it misses the mean in at most 1 - confidence of cases, where
values are normal; tests/stats/test_anytime.py counts others.

Sources: Lai, Annals of Statistics 4(2), 1976; Wang and Ramdas, Anytime-valid t-tests and confidence
sequences for Gaussian means with unknown variance, 2023 (theorem 4.9).
"""

from __future__ import annotations

import math

from nephoscope.stats.statistics import means
from nephoscope.stats.statistics.ranks import Shift
from nephoscope.stats.statistics.values import Array

PRIOR_N = 1.0
"""Values that the prior is worth. With 1 the interval is narrowest for differences of about a
standard deviation, which ten to twenty rounds decide; 0.1 takes a tenth more at 20 rounds."""


def half_width_of(n: int, confidence: float) -> float:
    """Returns half the width after n values, in standard errors; infinite for very few values."""
    shrinkage = PRIOR_N / (n + PRIOR_N)
    growth = ((1 - confidence) ** 2 * shrinkage) ** (-1 / n)
    slack = 1 - growth * shrinkage
    return math.sqrt((n - 1) * (growth - 1) / slack) if slack > 0 else math.inf


def mean_shift(values: Array, confidence: float) -> Shift:
    """Returns the mean with its confidence sequence after these values; without an interval where
    they are too few."""
    if values.size < 2:
        return Shift(float(values[0]), None, None)
    got = means.summary(values)
    half = half_width_of(got.n, confidence)
    if not math.isfinite(half):
        return Shift(got.mean, None, None)
    half *= got.s / math.sqrt(got.n)
    return Shift(got.mean, got.mean - half, got.mean + half)
