"""How consistent is a metric, and is one system more consistent than another?

Ranking goes by the robust coefficient of variation; the classic one stands beside it, to compare
with what others print. Sources: Vangel 1996 (interval of the CoV); Brown & Forsythe 1974.
"""

from __future__ import annotations

import math

import numpy as np

from nephoscope.core.model import Consistency, ConsistencyWord, Estimate
from nephoscope.stats.statistics.bootstrap import (
    bca,
    interval_of_ratio,
    percentile_interval,
    resample,
)
from nephoscope.stats.statistics.means import skewness, summary
from nephoscope.stats.statistics.values import (
    EQUAL_NOTE,
    Array,
    Numbers,
    Refused,
    all_equal,
    clean,
    finite,
    middles,
)

STEADY_BELOW = 0.02
"""Steady: the robust CoV is below 2 %. Then 10 repetitions, the least we take, pin the median to
about ±1.25 · 2.26 · 2 % / sqrt(10) = ±1.8 %, inside the default ±2 %."""

ERRATIC_ABOVE = 0.10
"""Erratic: the robust CoV is above 10 %. Then ±2 % would take (1.2533 · 1.96 · 10 % / 2 %)² = 151
repetitions, more than the 100 that a plan allows by default."""

LEAST_N = 6
RESAMPLES, BCA_RESAMPLES = 1999, 9999
UNKNOWN = Consistency(None, None, None, None, None, "unknown")
MAD_TO_SIGMA = 1.4826


def consistency(values: Numbers, *, confidence: float = 0.95, seed: int = 1) -> Consistency:
    """Returns how much one metric varies from repetition to repetition (ratios; see `Consistency`).

    values: one a repetition, shape (n,). word: of the robust CoV, certain where its whole interval
    has it; unknown below 6 repetitions and where a ratio to the median has no meaning (median 0,
    values of both signs).
    The interval is a bootstrap of the median absolute deviation with tails widened for few
    repetitions; its coverage is checked in the tests.
    """
    array = clean(values, least=0)
    # "Per cent of the value" means something only with one sign, and not around zero.
    one_sign = bool(np.all(array >= 0) or np.all(array <= 0))
    if array.size < LEAST_N or not one_sign or float(middles(array)) == 0:
        return UNKNOWN
    point = float(robust_cv(array))
    if not math.isfinite(point):  # half of the repetitions are timeouts
        return UNKNOWN
    replicas = resample(array, robust_cv, seed=seed, resamples=RESAMPLES)
    low, high = percentile_interval(replicas, point, array.size, confidence)
    top = high if math.isfinite(high) else None
    cv = cv_point(array) if np.all(np.isfinite(array)) else None
    word = _word(point)
    certain = {_word(low), _word(high)} == {word}
    return Consistency(point, cv, quartile_dispersion(array), low, top, word, certain)


def _word(cv: float) -> ConsistencyWord:
    return "steady" if cv < STEADY_BELOW else "erratic" if cv > ERRATIC_ABOVE else "variable"


def robust_cv(rows: Array) -> Array:
    """1.4826 MAD / |median| along the last axis; shape (…, n) gives (…)."""
    centre = middles(rows)[..., None]
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = middles(np.abs(rows - centre))
        ratio = MAD_TO_SIGMA * spread / np.abs(centre[..., 0])
    return np.asarray(np.where(np.isnan(ratio), np.inf, ratio))


def cv_point(array: Array, *, corrected: bool = False) -> float | None:
    """CoV, s / |mean|; None where it is refused. corrected: times 1 + 1/(4n), for small samples.

    Refused when the mean is not distinguishable from zero (|mean| <= 2 standard errors) or the
    values have both signs: the scale is then an interval scale (temperature, dB), not a ratio.
    """
    if array.size < 2 or not (np.all(array >= 0) or np.all(array <= 0)):
        return None
    got = summary(array)
    if abs(got.mean) <= 2 * got.s / math.sqrt(got.n):
        return None
    return got.s / abs(got.mean) * (1 + 1 / (4 * got.n) if corrected else 1)


def quartile_dispersion(array: Array) -> float | None:
    """(Q3 - Q1) / (Q3 + Q1) with type-7 quartiles; None when their sum is zero or infinite."""
    ordered = np.sort(array)
    at = np.array([0.25, 0.75]) * (ordered.size - 1)
    below, above = ordered[np.floor(at).astype(int)], ordered[np.ceil(at).astype(int)]
    # Only where they differ: between two timeouts the step would be infinity minus infinity.
    step = np.where(below == above, 0.0, at - np.floor(at))
    if not np.all(np.isfinite(above)):
        return None
    q1, q3 = (float(q) for q in below + (above - below) * step)
    return (q3 - q1) / abs(q3 + q1) if q3 + q1 else None


def coefficient_of_variation(values: Numbers, *, confidence: float = 0.95) -> Estimate:
    """CoV = s / |mean| with Vangel's interval when the values look normal, else BCa; unit ratio.

    "Look normal": skewness and excess kurtosis within two standard errors. Raises Refused below 6
    values, for timeouts, near a mean of zero and for values of both signs.
    """
    array = finite(values, least=LEAST_N, statistic="coefficient of variation")
    n, point = int(array.size), cv_point(array)
    if point is None:
        raise Refused(
            "The mean is not distinguishable from zero or the values have both signs: a "
            "coefficient of variation has no meaning; use the standard deviation."
        )
    if all_equal(array):
        note = EQUAL_NOTE.format(n=n)
        return Estimate(point, 0.0, 0.0, confidence, n, "ratio", "s / mean", note)
    if is_normal(array):
        low, high = vangel(point, n, confidence)
        return Estimate(point, low, high, confidence, n, "ratio", "s / mean; Vangel")
    low, high = bca(array, cv_rows, confidence=confidence, seed=1, resamples=BCA_RESAMPLES)
    method = f"s / mean; BCa bootstrap, {BCA_RESAMPLES} resamples, seed 1"
    return Estimate(point, low, high, confidence, n, "ratio", method)


def cv_rows(rows: Array) -> Array:
    """Coefficient of variation, s / |mean|, along the last axis; shape (…, n) gives (…)."""
    return np.asarray(np.std(rows, axis=-1, ddof=1) / np.abs(np.mean(rows, axis=-1)))


def is_normal(array: Array) -> bool:
    """Skewness and excess kurtosis both within two standard errors of a normal sample's."""
    n = array.size
    g1, g1_error = skewness(array)
    centred = array - array.mean()
    m2 = float(np.mean(centred**2))
    if n < 4 or m2 == 0:
        return False
    g2 = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * (float(np.mean(centred**4)) / m2**2 - 3) + 6)
    g2_error = 2 * g1_error * math.sqrt((n * n - 1) / ((n - 3) * (n + 5)))
    return abs(g1) <= 2 * g1_error and abs(g2) <= 2 * g2_error


def vangel(cv: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Vangel's interval of a coefficient of variation of n near-normal values (also imported ones).

    The upper bound is infinite where the formula has no root (CoV above about a third, small n).
    """
    from scipy.special import chdtri

    bounds = []
    for tail in ((1 - confidence) / 2, (1 + confidence) / 2):  # chdtri takes the upper tail
        u = float(chdtri(n - 1, tail))
        inside = ((u + 2) / n - 1) * cv**2 + u / (n - 1)
        bounds.append(cv / math.sqrt(inside) if inside > 0 else math.inf)
    return bounds[0], bounds[1]


def ratio_of_robust_cv(
    a: Numbers, b: Numbers, *, confidence: float = 0.95, seed: int = 1, resamples: int = RESAMPLES
) -> Estimate:
    """Returns how many times as variable as A is B: ratio of robust CoVs with a bootstrap interval.

    Rank two systems by consistency only when the interval excludes 1; otherwise they tie.
    Raises Refused below 6 values a side and when A does not vary at all.
    """
    values_a, values_b = clean(a, least=LEAST_N), clean(b, least=LEAST_N)
    below, above = float(robust_cv(values_a)), float(robust_cv(values_b))
    if below == 0 or not math.isfinite(below) or not math.isfinite(above):
        raise Refused("One side does not vary, or half of it timed out: there is no ratio to give.")
    first = resample(values_a, robust_cv, seed=seed, resamples=resamples)
    second = resample(values_b, robust_cv, seed=seed + 1, resamples=resamples)
    units = min(values_a.size, values_b.size)
    low, top = interval_of_ratio(second, first, above / below, units, confidence)
    method = f"ratio of robust CoVs; bootstrap, {resamples} resamples, seed {seed}"
    note = "" if top is not None else "The upper bound is infinite: A may not vary at all."
    return Estimate(above / below, low, top, confidence, units, "ratio", method, note)


def standard_deviation(values: Numbers, *, unit: str, confidence: float = 0.95) -> Estimate:
    """Sample standard deviation: the chi-square interval when the values look normal, else BCa.

    Raises Refused below 6 values and for timeouts.
    """
    array = finite(values, least=LEAST_N, statistic="standard deviation")
    n, point = int(array.size), summary(array).s
    if all_equal(array):
        note = EQUAL_NOTE.format(n=n)
        return Estimate(point, 0.0, 0.0, confidence, n, unit, "s", note)
    if is_normal(array):
        low, high = deviation_interval(point, n, confidence)
        return Estimate(point, low, high, confidence, n, unit, "s; chi-square")
    low, high = bca(array, _s_rows, confidence=confidence, seed=1, resamples=BCA_RESAMPLES)
    method = f"s; BCa bootstrap, {BCA_RESAMPLES} resamples, seed 1"
    return Estimate(point, low, high, confidence, n, unit, method)


def _s_rows(rows: Array) -> Array:
    return np.asarray(np.std(rows, axis=-1, ddof=1))


def deviation_interval(s: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Interval of the standard deviation of n normal values (also imported ones), n >= 2."""
    from scipy.special import chdtri

    low, high = (
        s * math.sqrt((n - 1) / float(chdtri(n - 1, tail)))
        for tail in ((1 - confidence) / 2, (1 + confidence) / 2)
    )
    return low, high
