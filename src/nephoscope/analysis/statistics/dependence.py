"""Do the repetitions of one series depend on each other?

Every interval of one sample assumes that they do not; drift, throttling and token buckets make
them. Source: Le Boudec 2010, ch. 2; Wald & Wolfowitz 1940 (runs test).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nephoscope.analysis.statistics.distributions import log_factorials
from nephoscope.analysis.statistics.values import Array, Numbers, clean

AUTOCORRELATION_LIMIT = 0.1
RUNS_TEST_LIMIT = 0.05


def lag1(values: Numbers) -> float:
    """Lag-1 autocorrelation of finite values in order of execution, -1 … 1; 0 without variation."""
    array = clean(values)
    offset = array - array[0]  # first remove the level: 1e7 + 0.1 must not lose its digits
    centred = offset - offset.mean()
    power = float(np.sum(centred**2))
    if power == 0:
        return 0.0
    return float(np.sum(centred[1:] * centred[:-1]) / power)


def rank_lag1(values: Numbers) -> float:
    """Lag-1 autocorrelation of the mid-ranks: one outlier or timeout cannot hide a drift."""
    return lag1(midranks(clean(values)))


def midranks(array: Array) -> Array:
    """Ranks 1 … n, ties sharing their mean rank."""
    ordered = np.sort(array)
    first = np.searchsorted(ordered, array, side="left")
    last = np.searchsorted(ordered, array, side="right")
    return (first + last + 1) / 2.0


def runs_test_p(values: Numbers) -> float:
    """Two-sided p of Wald and Wolfowitz's runs test about the median, by the exact law.

    Values equal to the median are left out, as usual. 1.0 when there is nothing to test (all
    equal, or one side empty). The p is twice the smaller tail, at most 1.
    """
    array = clean(values)
    above = array[array != np.median(array)] > np.median(array)
    high, low = int(above.sum()), int((~above).sum())
    if not high or not low:
        return 1.0
    runs = 1 + int(np.sum(above[1:] != above[:-1]))

    logarithms = log_factorials(high + low)

    def log_choose(n: int, k: NDArray[np.int64]) -> Array:
        inside = (k >= 0) & (k <= n)
        kk = np.where(inside, k, 0)
        logs = logarithms[n] - logarithms[kk] - logarithms[n - kk]
        return np.where(inside, logs, -np.inf)

    half = np.arange(1, min(high, low) + 1)
    everything = log_choose(high + low, np.array([high]))
    even = math.log(2) + log_choose(high - 1, half - 1) + log_choose(low - 1, half - 1)
    odd = np.logaddexp(
        log_choose(high - 1, half) + log_choose(low - 1, half - 1),
        log_choose(high - 1, half - 1) + log_choose(low - 1, half),
    )
    chance = np.exp(np.concatenate([even, odd]) - everything)
    count = np.concatenate([2 * half, 2 * half + 1])
    tail = min(chance[count <= runs].sum(), chance[count >= runs].sum())
    return float(min(1.0, 2 * tail))


def effective_n(values: Numbers) -> float:
    """How many independent repetitions these are worth: n (1 - rho) / (1 + rho), 1 … n.

    rho: lag-1 autocorrelation of the ranks, corrected for its small-sample bias -(1 + 4 rho) / n
    (Kendall 1954); only positive dependence counts.
    """
    array = clean(values)
    n = array.size
    rho = rank_lag1(array)
    corrected = min(0.99, rho + (1 + 4 * rho) / n)
    if rho <= 0 or corrected <= 0:
        return float(n)
    return max(1.0, n * (1 - corrected) / (1 + corrected))


def warning(values: Numbers) -> tuple[str | None, float]:
    """A sentence when the repetitions depend on each other, and their effective number.

    Asked for are both an autocorrelation (of ranks) above 0.1 and a runs test below 5 %: the
    first alone is met by a third of all independent series of ten. Without a sentence the
    effective number is n.
    """
    array = clean(values)
    rho = rank_lag1(array)
    if rho <= AUTOCORRELATION_LIMIT or runs_test_p(array) >= RUNS_TEST_LIMIT:
        return None, float(array.size)
    n_eff = effective_n(array)
    return (
        f"The repetitions depend on each other (lag-1 autocorrelation {rho:.2f}): {array.size} "
        f"of them are worth about {n_eff:.0f}; interleave, spread them over time, or rest between.",
        n_eff,
    )
