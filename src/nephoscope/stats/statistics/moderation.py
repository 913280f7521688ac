"""Variances of many series of one kind, each estimated with the help of the others.

A variance of eight values has seven degrees of freedom, for which a comparison among thousands
leaves intervals of no use. The variances of many alternatives show how much true variances differ;
each is moved towards their centre as far as that allows. Where true variances differ much, hardly.
Source: Smyth 2004, Linear models and empirical Bayes methods for assessing differential expression.
"""

from __future__ import annotations

import math

import numpy as np

from nephoscope.stats.statistics.values import Array

LEAST_SERIES = 6
"""Fewer variances do not show how much true variances differ."""


def moderated(variances: Array, df: Array) -> tuple[Array, Array]:
    """Returns variances moved towards their common centre, and their degrees of freedom.

    variances: of samples, shape (k,). df: of each; entries below 1 stay as they are. The true
    variances are taken to vary by a scaled inverse chi-square distribution, whose spread is
    estimated one standard error too large, so that few series are moved little.
    """
    from scipy.special import polygamma, psi

    used = (df >= 1) & (variances > 0) & np.isfinite(variances)
    k = int(used.sum())
    if k < LEAST_SERIES:
        return variances, df
    half = df[used] / 2
    logs = np.log(variances[used]) - psi(half) + np.log(half)
    spread = float(np.var(logs, ddof=1)) * (1 + math.sqrt(2 / (k - 1)))
    excess = spread - float(np.mean(polygamma(1, half)))
    most = float(df[used].sum())
    prior_df = most if excess <= 0 else min(most, 2 * _inverse_trigamma(excess))
    centre = math.exp(float(logs.mean()) + float(psi(prior_df / 2)) - math.log(prior_df / 2))
    every = df >= 1
    moved = np.where(every, (prior_df * centre + df * variances) / (prior_df + df), variances)
    return moved, np.where(every, np.minimum(prior_df + df, most), df)


def _inverse_trigamma(value: float) -> float:
    """Returns x with trigamma(x) = value, by Newton's method on the reciprocal (Smyth 2004)."""
    from scipy.special import polygamma

    if value > 1e7:
        return 1 / math.sqrt(value)
    if value < 1e-6:
        return 1 / value
    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, x))
        x += step
        if -step / x < 1e-8:
            break
    return x
