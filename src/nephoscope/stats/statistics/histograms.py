"""Histograms of many requests, from a few trials: they merge, percentiles are never averaged.

Requests inside one trial share its conditions, so the interval comes from whole trials: Student's
t over them, or, where timeouts leave some quantile without a value, a bootstrap of them.

Requests without an answer are right-censored observations: their latency is at least the time that
they waited. Waiting times depend on when a request was due, and under overload so does the latency:
Kaplan and Meier's estimator, which needs independence, does not hold. A quantile lies between that
of the waiting times and that with every unanswered request at infinity; where the two differ, the
first is a lower bound and all that is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from nephoscope.core.model import Estimate
from nephoscope.stats.statistics import dependence
from nephoscope.stats.statistics.bootstrap import CHUNK, percentile_interval
from nephoscope.stats.statistics.distributions import student_quantile
from nephoscope.stats.statistics.estimates import minimum_n
from nephoscope.stats.statistics.pooled_histograms import Counts as Counts
from nephoscope.stats.statistics.pooled_histograms import (
    PooledHistograms,
    nearest_ranks,
)
from nephoscope.stats.statistics.pooled_histograms import Trial as Trial
from nephoscope.stats.statistics.pooled_histograms import merge as merge
from nephoscope.stats.statistics.pooled_histograms import pooled as pooled
from nephoscope.stats.statistics.values import Array, Refused, percent

LEAST_TRIALS = 6

CENSORED_NOTE = "{count:,} of {total:,} requests had no answer: a lower bound."
"""Note of an estimate that unanswered requests reach."""

_SAME = 1.01
"""Bounds of a quantile that are no further apart are one value: a few buckets of a histogram."""


def quantile_of_counts(values: Array, counts: Counts, q: float) -> float:
    """Nearest-rank quantile of a merged histogram (values ascending, counts > 0)."""
    total = int(counts.sum())
    if not total:
        raise Refused("The histogram is empty: nothing was observed.")
    (rank,) = nearest_ranks(np.array([total]), q)
    return float(values[int(np.searchsorted(np.cumsum(counts), rank))])


def quantile(trials: Sequence[Trial], q: float) -> float:
    """Nearest-rank quantile of all trials together, without an interval."""
    return pooled(trials).quantile(q)


def quantile_of_trials(
    trials: Sequence[Trial],
    q: float,
    *,
    unit: str,
    confidence: float = 0.95,
    seed: int = 1,
    resamples: int = 9999,
    prior: Array = dependence.ASSUMED,
    unanswered: Sequence[Trial] = (),
) -> Estimate:
    """Nearest-rank quantile of all requests, with an interval over whole trials.

    trials: one histogram each; empty ones count as trials lost and are refused. n of the estimate
    is the number of trials. prior: of the autocorrelation of the trials (see `dependence`).
    unanswered: of each trial those observations that are lower bounds, or nothing where there are
    none; an estimate that they reach is censored.
    Raises Refused below 6 trials, below `minimum_n(q)` observations altogether (two-sided p99 at
    95 %: 368), for damaged histograms, and when the quantile lies among timeouts (+inf).
    """
    if any(len(counts) for _, counts in unanswered):
        return _of_censored(trials, unanswered, q, unit, confidence, seed, resamples, prior)
    if len(trials) < LEAST_TRIALS:
        raise Refused(
            f"p{100 * q:g} of {len(trials)} trials has no interval; it needs {LEAST_TRIALS} trials."
        )
    trials = pooled(trials)
    total, need = int(trials.totals.sum()), minimum_n(q, confidence)
    if total < need:
        raise Refused(
            f"p{100 * q:g} of {total} observations has no two-sided interval at "
            f"{percent(confidence)}; it needs {need}."
        )
    point = trials.quantile(q)
    if math.isinf(point):
        raise Refused(f"p{100 * q:g} lies among the timeouts; raise the timeout.")
    method = f"p{100 * q:g}, nearest rank of {total} observations; "
    bounds = _t_interval(trials, q, point, confidence, prior)
    if bounds is None:
        replicas = _replicas(trials, q, seed, resamples)
        bounds = percentile_interval(replicas, point, len(trials), confidence)
        method += f"bootstrap of {len(trials)} trials, {resamples} resamples, seed {seed}"
    else:
        method += f"Student t over {len(trials)} trials"
    low, high = bounds
    top = high if math.isfinite(high) else None
    note = "" if top is not None else "The upper bound lies beyond the timeout."
    return Estimate(point, low, top, confidence, len(trials), unit, method, note)


def _of_censored(
    trials: Sequence[Trial],
    unanswered: Sequence[Trial],
    q: float,
    unit: str,
    confidence: float,
    seed: int,
    resamples: int,
    prior: Array,
) -> Estimate:
    """`quantile_of_trials` where some observations are lower bounds."""

    def of(sides: Sequence[Trial]) -> Estimate:
        return quantile_of_trials(
            sides,
            q,
            unit=unit,
            confidence=confidence,
            seed=seed,
            resamples=resamples,
            prior=prior,
        )

    trials = pooled(trials)
    least = of(trials)
    upper = [_beyond(*pair) for pair in zip(trials, unanswered, strict=True)]
    if quantile(upper, q) <= least.value * _SAME:
        known = of(upper)
        lows = [low for low in (least.low, known.low) if low is not None]
        return replace(known, low=min(lows, default=None))
    total, count = (int(pooled(side).totals.sum()) for side in (trials, unanswered))
    note = CENSORED_NOTE.format(count=count, total=total)
    return replace(least, high=None, note=note, censored=True)


def is_censored(trial: Trial, unanswered: Trial, q: float) -> bool:
    """States whether unanswered requests reach the quantile of one trial."""
    return quantile([_beyond(trial, unanswered)], q) > quantile([trial], q) * _SAME


def _beyond(trial: Trial, unanswered: Trial) -> Trial:
    """The histogram with its unanswered requests at infinity. Raises Refused where it lacks one."""
    values, counts = merge([trial])
    waited, numbers = merge([unanswered])
    at = np.minimum(np.searchsorted(values, waited), max(values.size - 1, 0))
    left = counts.copy()
    if waited.size:
        if not values.size or np.any(values[at] != waited) or np.any(left[at] < numbers):
            raise Refused("Unanswered requests are missing among all requests of the trial.")
        left[at] -= numbers
    return np.append(values, np.inf), np.append(left, numbers.sum())


def _t_interval(
    trials: PooledHistograms, q: float, point: float, confidence: float, prior: Array
) -> tuple[float, float] | None:
    """Student's interval of the merged quantile over trials; None where one is not finite.

    Its error is the larger of two: that of the jackknife over trials, which is too small where the
    requests of a trial are much alike, and that of the mean of the trials' own quantiles. Both are
    of logarithms where all values lie above zero. It never leaves the range of all requests.
    """
    k = len(trials)
    least, most = trials.extremes
    own, without = trials.quantiles(q), trials.quantiles_without_each(q)
    if not np.all(np.isfinite(own)) or not np.all(np.isfinite(without)):
        return None
    scale = np.log if least > 0 else np.asarray
    jackknife = math.sqrt((k - 1) * float(np.var(scale(without))))
    error = max(jackknife, float(np.std(scale(own), ddof=1)) / math.sqrt(k))
    half = error * student_quantile(k - 1, (1 + confidence) / 2)
    if prior is not dependence.INDEPENDENT:
        half *= dependence.widening(k, dependence.posterior(own, prior))(confidence)
    # Not the exponential of the point's logarithm: rounded, it may miss the point itself.
    low, high = (
        (point * math.exp(-half), point * math.exp(half))
        if least > 0
        else (point - half, point + half)
    )
    return max(low, least), min(high, most)


@lru_cache(maxsize=1)
def draws(trials: int, seed: int, resamples: int) -> Counts:
    """Returns how often each trial is in each resample; shape (resamples, trials).

    The percentiles of one histogram share their draws, which take longer than all the rest.
    """
    drawn: Counts = next(_parts_of_draws(trials, seed, resamples, resamples))
    drawn.flags.writeable = False
    return drawn


def _parts_of_draws(trials: int, seed: int, resamples: int, rows: int) -> Iterator[Counts]:
    """Yields the rows of `draws`, so many at once."""
    rng = np.random.default_rng(seed)
    shares = np.full(trials, 1 / trials)
    for first in range(0, resamples, rows):
        yield rng.multinomial(trials, shares, size=min(rows, resamples - first))


def _replicas(trials: PooledHistograms, q: float, seed: int, resamples: int) -> Array:
    """Returns the quantile of each resample, in bounded memory; shape (resamples,)."""
    rows = max(1, CHUNK // len(trials))
    if rows >= resamples:
        return trials.quantiles_of_draws(q, draws(len(trials), seed, resamples))
    parts = _parts_of_draws(len(trials), seed, resamples, rows)
    return np.concatenate([trials.quantiles_of_draws(q, drawn) for drawn in parts])
