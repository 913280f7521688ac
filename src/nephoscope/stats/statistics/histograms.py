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
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from nephoscope.core.model import Estimate
from nephoscope.stats.statistics import dependence
from nephoscope.stats.statistics.bootstrap import percentile_interval
from nephoscope.stats.statistics.distributions import student_quantile
from nephoscope.stats.statistics.estimates import minimum_n
from nephoscope.stats.statistics.values import Array, Refused, clean, percent

Counts = NDArray[np.int64]
Trial = tuple[Sequence[float] | Array, Sequence[int] | Counts]
"""The histogram of one trial: values (any order, repeats allowed) and how often each was seen."""

LEAST_TRIALS = 6

CENSORED_NOTE = "{count:,} of {total:,} requests had no answer: a lower bound."
"""Note of an estimate that unanswered requests reach."""

_SAME = 1.01
"""Bounds of a quantile that are no further apart are one value: a few buckets of a histogram."""


def _checked(trial: Trial) -> tuple[Array, Counts]:
    values, counts = clean(trial[0], least=0), np.asarray(trial[1], dtype=np.int64)
    if values.shape != counts.shape:
        raise Refused(f"{values.size} values but {counts.size} counts: not a histogram.")
    if np.any(counts < 0):
        raise Refused("A histogram has a negative count; it was damaged on its way here.")
    return values, counts


def merge(trials: Sequence[Trial]) -> tuple[Array, Counts]:
    """One histogram of all trials: distinct values ascending, and their summed counts.

    Values with a count of zero vanish; no trials give two empty arrays.
    """
    checked = [_checked(trial) for trial in trials]
    if not checked:
        return np.empty(0), np.empty(0, dtype=np.int64)
    if len(checked) == 1:
        ((values, counts),) = checked
        if np.all(counts > 0) and np.all(values[1:] > values[:-1]):
            return values, counts
    values = np.concatenate([values for values, _ in checked])
    counts = np.concatenate([counts for _, counts in checked])
    distinct, at = np.unique(values, return_inverse=True)
    summed = np.zeros(distinct.size, dtype=np.int64)
    np.add.at(summed, at, counts)
    seen = summed > 0
    return distinct[seen], summed[seen]


def quantile_of_counts(values: Array, counts: Counts, q: float) -> float:
    """Nearest-rank quantile of a merged histogram (values ascending, counts > 0)."""
    total = int(counts.sum())
    if not total:
        raise Refused("The histogram is empty: nothing was observed.")
    (rank,) = _ranks(np.array([total]), q)
    return float(values[int(np.searchsorted(np.cumsum(counts), rank))])


def quantile(trials: Sequence[Trial], q: float) -> float:
    """Nearest-rank quantile of all trials together, without an interval."""
    return quantile_of_counts(*merge(trials), q)


def _ranks(totals: Counts, q: float) -> Counts:
    """Nearest rank of a quantile among so many observations; shape as `totals`."""
    if not 0 <= q <= 1:
        raise Refused(f"{q} is no quantile; give a share between 0 and 1, 0.99 for p99.")
    wanted = q * totals
    ranks: Counts = np.ceil(wanted - 1e-9 * np.maximum(1.0, wanted)).astype(np.int64)
    np.maximum(1, ranks, out=ranks)
    return ranks


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
    values, counts = merge(trials)
    total, need = int(counts.sum()), minimum_n(q, confidence)
    if total < need:
        raise Refused(
            f"p{100 * q:g} of {total} observations has no two-sided interval at "
            f"{percent(confidence)}; it needs {need}."
        )
    point = quantile_of_counts(values, counts, q)
    if math.isinf(point):
        raise Refused(f"p{100 * q:g} lies among the timeouts; raise the timeout.")
    method = f"p{100 * q:g}, nearest rank of {total} observations; "
    bounds = _t_interval(trials, values, q, point, confidence, prior)
    if bounds is None:
        replicas = quantiles_of_draws(trials, values, q, draws(len(trials), seed, resamples))
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

    least = of(trials)
    upper = [_beyond(*pair) for pair in zip(trials, unanswered, strict=True)]
    if quantile(upper, q) <= least.value * _SAME:
        known = of(upper)
        lows = [low for low in (least.low, known.low) if low is not None]
        return replace(known, low=min(lows, default=None))
    total, count = (sum(sum(counts) for _, counts in side) for side in (trials, unanswered))
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
    trials: Sequence[Trial], values: Array, q: float, point: float, confidence: float, prior: Array
) -> tuple[float, float] | None:
    """Student's interval of the merged quantile over trials; None where one is not finite.

    Its error is the larger of two: that of the jackknife over trials, which is too small where the
    requests of a trial are much alike, and that of the mean of the trials' own quantiles. Both are
    of logarithms where all values lie above zero. It never leaves the range of all requests.
    """
    k = len(trials)
    own, without = (
        quantiles_of_draws(trials, values, q, drawn.astype(np.int64))
        for drawn in (np.eye(k), 1 - np.eye(k))
    )
    if not np.all(np.isfinite(own)) or not np.all(np.isfinite(without)):
        return None
    scale = np.log if values[0] > 0 else np.asarray
    jackknife = math.sqrt((k - 1) * float(np.var(scale(without))))
    error = max(jackknife, float(np.std(scale(own), ddof=1)) / math.sqrt(k))
    half = error * student_quantile(k - 1, (1 + confidence) / 2)
    if prior is not dependence.INDEPENDENT:
        half *= dependence.widening(k, dependence.posterior(own, prior))(confidence)
    # Not the exponential of the point's logarithm: rounded, it may miss the point itself.
    low, high = (
        (point * math.exp(-half), point * math.exp(half))
        if values[0] > 0
        else (point - half, point + half)
    )
    return max(low, float(values[0])), min(high, float(values[-1]))


@lru_cache(maxsize=1)
def draws(trials: int, seed: int, resamples: int) -> Counts:
    """Returns how often each trial is in each resample; shape (resamples, trials).

    The percentiles of one histogram share their draws, which take longer than all the rest.
    """
    rng = np.random.default_rng(seed)
    drawn: Counts = rng.multinomial(trials, np.full(trials, 1 / trials), size=resamples)
    drawn.flags.writeable = False
    return drawn


def quantiles_of_draws(trials: Sequence[Trial], values: Array, q: float, drawn: Counts) -> Array:
    """The quantile of the merged histogram of each draw; shape (draws,).

    values: distinct values of all trials, ascending (`merge`). drawn: how often each trial is in
    each draw, shape (draws, trials). Raises Refused for a trial that observed nothing.
    """
    cumulative = np.zeros((len(trials), values.size), dtype=np.int64)
    for row, trial in enumerate(trials):
        own, counts = merge([trial])
        if not counts.size:
            raise Refused(f"Trial {row + 1} observed nothing; leave it out and say why.")
        cumulative[row, np.searchsorted(values, own)] = counts
    np.cumsum(cumulative, axis=1, out=cumulative)
    totals = drawn @ cumulative[:, -1]
    ranks = _ranks(totals, q)
    # Bisection over the buckets, all resamples at once: the full table would be
    # resamples x buckets (9999 x 27 000 for three digits).
    first = np.zeros(len(drawn), np.int64)
    last = np.full(len(drawn), values.size - 1, np.int64)
    while np.any(first < last):
        middle = (first + last) // 2
        enough = np.einsum("rt,tr->r", drawn, cumulative[:, middle]) >= ranks
        first, last = np.where(enough, first, middle + 1), np.where(enough, middle, last)
    return values[first]
