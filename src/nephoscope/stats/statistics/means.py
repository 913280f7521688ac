"""Means where a mean has a meaning: durations and costs; rates by the harmonic mean.

Also two means against each other from summaries alone (mean, s, n), because imported results
often carry no more: Welch, Fieller, TOST.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass
from nephoscope.stats.statistics.distributions import student_quantile
from nephoscope.stats.statistics.reach import without_wide_interval
from nephoscope.stats.statistics.values import (
    EQUAL_NOTE,
    Array,
    Numbers,
    Refused,
    all_equal,
    clean,
    finite,
)

SKEWNESS_FROM = 6
"""Fewer values do not show their skewness, and the correction only widens their interval."""
TINY = 1e-6


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean, sample standard deviation (n - 1) and number of independent repetitions."""

    mean: float
    s: float
    n: int


def summary(values: Numbers) -> Summary:
    """Two-pass mean and s of finite values, n >= 2; good to 1e-8 beside a level of 1e7."""
    array = finite(values, least=2)
    shift = array[0]
    offset = array - shift  # exact or nearly so; the level never meets the squares
    mean = float(offset.mean())
    squares = float(np.sum((offset - mean) ** 2))
    return Summary(float(shift + mean), math.sqrt(squares / (array.size - 1)), int(array.size))


def widened(values: Summary, factor: float) -> Summary:
    """The summary whose t interval is as many times as wide as dependence requires."""
    return replace(values, s=values.s * factor)


def t_quantile(df: float, confidence: float) -> float:
    """Two-sided Student t quantile."""
    if df == int(df):
        return student_quantile(int(df), (1 + confidence) / 2)
    from scipy.special import stdtrit

    return float(stdtrit(df, (1 + confidence) / 2))


def skewness(array: Array) -> tuple[float, float]:
    """Adjusted Fisher-Pearson skewness G1 and its standard error for normal data; n >= 3."""
    n = array.size
    centred = array - array.mean()
    m2 = float(np.mean(centred**2))
    if n < 3 or m2 == 0:
        return 0.0, math.inf
    g1 = float(np.mean(centred**3)) / m2**1.5
    return (
        g1 * math.sqrt(n * (n - 1)) / (n - 2),
        math.sqrt(6 * n * (n - 1) / ((n - 2) * (n + 1) * (n + 3))),
    )


def skewed_note(array: Array) -> str:
    """A sentence when the skewness exceeds twice its standard error, else nothing."""
    g1, error = skewness(array)
    if abs(g1) <= 2 * error:
        return ""
    return (
        f"The values are skewed (skewness {g1:.1f}): the interval may cover less often than it "
        "says; prefer the median."
    )


def mean_t(
    values: Numbers,
    *,
    unit: str,
    confidence: float = 0.95,
    least: float = -math.inf,
    widening: float = 1.0,
) -> Estimate:
    """Arithmetic mean with Student's t interval; the note warns when the values are skewed.

    least: what the mean cannot lie below (0 of a time); the interval is cut there, which takes
    nothing from its coverage. widening: factor of the interval's width for dependent values. One
    value has no interval, and two have none that says anything (`reach`). Raises Refused for
    timeouts and not-a-number.
    """
    array = finite(values)
    whole = t_interval(array, unit=unit, confidence=confidence, widening=widening)
    bounded = without_wide_interval(whole, float(np.ptp(array)))
    return bounded if bounded.low is None else replace(bounded, low=max(least, bounded.low))


def t_interval(
    array: Array, *, unit: str, confidence: float = 0.95, widening: float = 1.0
) -> Estimate:
    """Returns the mean of finite values with the whole of Student's t interval, as `mean_t`."""
    n = int(array.size)
    if n < 2:
        note = "n = 1: an interval of the mean needs 3 repetitions."
        return Estimate(float(array[0]), None, None, confidence, 1, unit, "mean", note)
    got = summary(array)
    half = widening * t_quantile(n - 1, confidence) * got.s / math.sqrt(n)
    note = EQUAL_NOTE.format(n=n) if all_equal(array) else skewed_note(array)
    low, high = got.mean - half, got.mean + half
    return Estimate(got.mean, low, high, confidence, n, unit, "mean; Student t", note)


def mean_of_skewed(
    values: Numbers, *, unit: str, confidence: float = 0.95, least: float = -math.inf
) -> Estimate:
    """As `mean_t`, its interval corrected for skewness from 6 values on. Source: Hall 1992.

    Without skewness it is Student's; exponential values, ten of them, are covered in 94 % of cases
    instead of 90 %. See docs/decisions/0028-small-sample-means-and-merged-percentiles.md.
    """
    plain = mean_t(values, unit=unit, confidence=confidence, least=least)
    array = clean(values)
    centred = array - plain.value
    m2 = float(np.mean(centred**2))
    if plain.n < SKEWNESS_FROM or plain.low is None or not m2:
        return plain
    skew = float(np.mean(centred**3)) / m2**1.5 / math.sqrt(plain.n) or TINY
    t = t_quantile(plain.n - 1, confidence)
    error = summary(array).s / math.sqrt(plain.n)
    high, low = (
        plain.value - 3 / skew * (float(np.cbrt(1 + skew * (end - skew / 6))) - 1) * error
        for end in (-t, t)
    )
    hall = replace(plain, low=low, high=high, method="mean; Hall's transformed t")
    bounded = without_wide_interval(hall, float(np.ptp(array)))
    return bounded if bounded.low is None else replace(bounded, low=max(least, low))


def least_of(values: Sequence[float]) -> float:
    """`least` for quantities that have no sign (times, rates, shares, counts): 0 while every value
    is at least that. A difference has a sign and none of this."""
    return 0.0 if min(values, default=-1.0) >= 0 else -math.inf


@dataclass(frozen=True, slots=True)
class Welch:
    """Welch's test of b - a: difference, its standard error, t, Satterthwaite's df, two-sided p."""

    difference: float
    error: float
    t: float
    df: float
    p: float

    def interval(self, confidence: float) -> tuple[float, float]:
        """Interval of the difference of means."""
        half = t_quantile(self.df, confidence) * self.error
        return self.difference - half, self.difference + half


def two_sided_p(difference: float, error: float, df: float) -> float:
    """Student's two-sided p that a difference is zero, from its standard error."""
    from scipy.special import stdtr

    if error == 0:
        return float(difference == 0)
    return float(2 * stdtr(df, -abs(difference) / error))


def welch(a: Summary, b: Summary) -> Welch:
    """Welch's unequal-variances t test. Raises Refused when neither side varies."""
    va, vb = a.s**2 / a.n, b.s**2 / b.n
    if va + vb == 0:
        raise Refused("Neither side varies: a t test has nothing to measure the difference by.")
    df = (va + vb) ** 2 / (va**2 / (a.n - 1) + vb**2 / (b.n - 1))
    difference, error = b.mean - a.mean, math.sqrt(va + vb)
    return Welch(difference, error, difference / error, df, two_sided_p(difference, error, df))


def fieller(
    a: Summary, b: Summary, confidence: float = 0.95, *, covariance: float | None = None
) -> tuple[float, float] | None:
    """Interval of the ratio of means b / a; None when it is unbounded (g >= 1).

    g >= 1: the mean of a is not distinguishable from zero at this confidence. covariance: of one
    value of a with one of b, for values taken in pairs (equal n); the degrees of freedom are then
    n - 1, else Satterthwaite's. Source: Fieller 1954.
    """
    if a.mean == 0:
        return None
    va, vb = a.s**2 / a.n, b.s**2 / b.n
    ratio, shared = b.mean / a.mean, (covariance or 0.0) / a.n
    if va + vb == 0:
        return ratio, ratio
    t = t_quantile(welch(a, b).df if covariance is None else a.n - 1, confidence)
    g = t**2 * va / a.mean**2
    if g >= 1:
        return None
    pull = shared / va if va else 0.0
    centre = (ratio - g * pull) / (1 - g)
    inside = vb - 2 * ratio * shared + ratio**2 * va - g * (vb - shared * pull)
    half = abs(t / a.mean) * math.sqrt(max(0.0, inside)) / (1 - g)
    return centre - half, centre + half
