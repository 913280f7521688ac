"""Jain's index of fairness: how evenly several share what they get.

Source: Jain, Chiu & Hawe, A quantitative measure of fairness, DEC-TR-301, 1984.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nephoscope.core.model import Estimate
from nephoscope.stats.statistics.bootstrap import percentile_interval
from nephoscope.stats.statistics.histograms import draws
from nephoscope.stats.statistics.values import Array, Numbers, Refused, finite

LEAST_ROUNDS = 6
RESAMPLES = 1999
SEED = 1


def jain(allocations: Numbers) -> float:
    """Jain's index (sum x)^2 / (n sum x^2): 1 when all get the same, 1/n when one gets all.

    allocations: what each gets of what it is due, >= 0. Raises Refused where nobody gets anything.
    """
    x = finite(allocations, statistic="fairness")
    if np.any(x < 0) or not np.any(x > 0):
        raise Refused("Fairness needs shares that are not negative, and one above zero.")
    return float(_jain_rows(x))


def _jain_rows(rows: Array) -> Array:
    return np.asarray(np.sum(rows, axis=-1) ** 2 / (rows.shape[-1] * np.sum(rows**2, axis=-1)))


def jain_of_rounds(rounds: Sequence[Numbers], *, confidence: float = 0.95) -> Estimate:
    """Jain's index of the mean shares, with an interval from resampling whole rounds.

    rounds: shape (rounds, tenants). Near 1 the index cannot exceed its bound and noise pulls it
    down by about the square of the shares' relative error. Below 6 rounds there is no interval.
    Raises Refused for fewer than two tenants.
    """
    table = np.asarray(rounds, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2 or not len(table):
        raise Refused("Fairness is a question about two tenants or more, in every round.")
    n = len(table)
    point = jain(table.mean(axis=0))
    method = f"Jain's index of mean shares; bootstrap of {n} rounds, {RESAMPLES} resamples"
    if n < LEAST_ROUNDS:
        note = f"n = {n}: an interval needs {LEAST_ROUNDS} rounds."
        return Estimate(point, None, None, confidence, n, "ratio", method, note)
    replicas = _jain_rows(draws(n, SEED, RESAMPLES) @ table / n)
    low, high = percentile_interval(replicas, point, n, confidence)
    return Estimate(point, low, high, confidence, n, "ratio", f"{method}, seed {SEED}")
