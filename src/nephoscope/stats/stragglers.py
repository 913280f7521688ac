"""How the slowest of several workers grows with their number: the law of stragglers, fitted.

A step of parallel work ends with its slowest worker. If each worker takes a fixed time a and an
exponential delay of mean s, independently, the slowest of n takes a + s H_n on average, H_n = 1 +
1/2 + ... + 1/n. Source: Rényi 1953; David & Nagaraja, Order Statistics, 3rd ed. 2003, section 2.5.
Delays of another distribution grow otherwise; `misfit_ratio` states how far the line misses them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nephoscope.core.model import Estimate
from nephoscope.stats.statistics.distributions import student_quantile
from nephoscope.stats.statistics.values import Refused

_METHOD = "least squares over the harmonic numbers of the workers; Student t"


@dataclass(frozen=True, slots=True)
class StragglerLaw:
    """Mean time of the slowest of n workers: fixed + delay x H_n.

    misfit_ratio: largest distance of the mean at one number of workers from the line, relative to
    that mean.
    """

    fixed: Estimate
    delay: Estimate
    misfit_ratio: float

    def slowest(self, workers: int) -> float:
        """Returns the mean time of the slowest of so many workers, in the law's unit."""
        return self.fixed.value + self.delay.value * harmonic_number(workers)


def harmonic_number(n: int) -> float:
    """Returns 1 + 1/2 + ... + 1/n."""
    return math.fsum(1 / k for k in range(1, n + 1))


def straggler_law(
    workers: Sequence[int], slowest: Sequence[float], *, unit: str, confidence: float = 0.95
) -> StragglerLaw:
    """Returns the law of trials. workers, slowest: of each trial, the mean of its slowest worker.

    Neither time is negative: where the line says so of the fixed one, the law goes through the
    origin; where it says so of the delay, the law is the mean of all trials.

    Raises Refused for fewer than three trials or one number of workers, and where the interval of
    one of the two has negative values alone.
    """
    if len(set(workers)) < 2 or len(workers) < 3:
        raise Refused("The law needs three trials, with two numbers of workers.")
    x = np.array([harmonic_number(n) for n in workers])
    y = np.asarray(slowest, dtype=float)
    centred = x - x.mean()
    spread = float(centred @ centred)
    delay = float(centred @ y) / spread
    fixed = float(y.mean()) - delay * float(x.mean())
    free = y.size - 2
    error = math.sqrt(float(np.sum((y - fixed - delay * x) ** 2)) / free)
    t = student_quantile(free, (1 + confidence) / 2)
    half = t * error * math.sqrt(1 / spread)
    half_fixed = t * error * math.sqrt(1 / y.size + float(x.mean()) ** 2 / spread)
    most_fixed = fixed + half_fixed
    if most_fixed < 0:
        raise Refused("The slowest grows faster than the law allows: no fixed time is left.")
    if delay + half < 0:
        raise Refused("The slowest is faster among more workers: the law has no such delay.")
    if fixed < 0:
        fixed, delay = 0.0, float(x @ y) / float(x @ x)
    elif delay < 0:
        fixed, delay = float(y.mean()), 0.0
        most_fixed = max(most_fixed, fixed)
    misfit = 0.0
    for n in set(workers):
        mean = float(y[np.array(workers) == n].mean())
        if mean > 0:
            misfit = max(misfit, abs(fixed + delay * harmonic_number(n) - mean) / mean)

    def estimate(value: float, low: float, high: float) -> Estimate:
        return Estimate(value, low, high, confidence, int(y.size), unit, _METHOD)

    return StragglerLaw(
        estimate(fixed, max(0.0, fixed - half_fixed), most_fixed),
        estimate(delay, max(0.0, delay - half), delay + half),
        misfit,
    )
