"""Distribution functions that every result needs, without the 0.2 s that scipy.special takes.

Each is exact to rounding; the tests compare them with SciPy. Statistics that few results need
import SciPy's own. See docs/decisions/0018-small-runs-answer-at-once.md.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from nephoscope.stats.statistics.values import Array

_NORMAL = NormalDist()


def normal_cdf(z: float) -> float:
    """Returns P(Z <= z) of the standard normal distribution."""
    return math.erfc(-z / math.sqrt(2)) / 2


def normal_quantile(p: float) -> float:
    """Returns the z with P(Z <= z) = p, 0 < p < 1."""
    return _NORMAL.inv_cdf(p)


@lru_cache(maxsize=1024)
def student_quantile(df: int, p: float) -> float:
    """Returns the t with P(T <= t) = p for Student's t with df degrees of freedom, 0.5 <= p < 1.

    Newton's method from the normal quantile, which lies left of t, where the distribution function
    is concave: each step stays left of t and comes closer.
    Source of the function: Abramowitz & Stegun, 26.7.3 and 26.7.4.
    """
    log_scale = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - math.log(df * math.pi) / 2
    t = _NORMAL.inv_cdf(p)
    for _ in range(100):
        log_density = log_scale - (df + 1) / 2 * math.log1p(t * t / df)
        step = (p - float(student_cdf(df, np.asarray(t)))) / math.exp(log_density)
        t += step
        if abs(step) <= 1e-14 * t:
            break
    return t


def student_cdf(df: int, t: Array) -> Array:
    """Returns P(T <= t) of Student's t with df degrees of freedom, t >= 0."""
    angle = np.arctan(t / math.sqrt(df))
    sine, cosine = np.sin(angle), np.cos(angle)
    odd = df % 2
    term, total = (cosine if odd else np.ones_like(angle)), np.zeros_like(angle)
    for power in range(1 + odd, df, 2):
        total = total + term
        term = term * (power / (power + 1) * cosine**2)
    within = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return np.asarray((1 + within) / 2)


def binomial_mass(n: int, q: float) -> tuple[int, Array]:
    """Returns the first k and P(X = k) of Bin(n, q) from there on, within 12 standard deviations.

    Products of ratios outwards from the mode: relative errors stay near 1e-13 for any n.
    """
    reach = 12 + 12 * math.sqrt(n * q * (1 - q))
    first, last = max(0, math.floor(n * q - reach)), min(n, math.ceil(n * q + reach))
    mode = min(last, max(first, math.floor((n + 1) * q)))
    up, down = np.arange(mode, last), np.arange(mode, first, -1)
    mass = np.concatenate(
        (
            np.cumprod(down / (n - down + 1) * ((1 - q) / q))[::-1],
            [1.0],
            np.cumprod((n - up) / (up + 1) * (q / (1 - q))),
        )
    )
    return first, mass / mass.sum()


def beta_binomial_cumulative(n: int, q: float, inflation: Array) -> Array:
    """Returns P(X <= k) for k = 0 … n of beta-binomial counts with mean nq, a row an inflation.

    inflation: variance over that of the binomial distribution, which 1 gives itself. The law of
    how many of n dependent values lie below the quantile q.
    """
    k = np.arange(n)
    within = np.maximum((inflation - 1) / (n - 1), 0.0)[:, None]
    # Both parameters times (1 - within) / within stay finite without dependence.
    up = (n - k) * (k * within + q * (1 - within))
    down = (k + 1) * ((n - k - 1) * within + (1 - q) * (1 - within))
    logs = np.zeros((inflation.size, n + 1))
    np.cumsum(np.log(up) - np.log(down), axis=1, out=logs[:, 1:])
    mass = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(np.cumsum(mass, axis=1) / mass.sum(axis=1, keepdims=True))
