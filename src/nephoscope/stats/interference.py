"""What a load takes from a victim: interference factors by round, and of how steady it is.

A factor above 1 is always worse: time beside the load over time in quiet, or rate in quiet over
rate beside it. Trials are held in triples of one round: quiet, loaded, quiet again. The loaded
value is divided by the geometric mean of its two quiet neighbours, so that a drift that is straight
over the three trials cancels. Sources: Fieller 1954 (ratio of means); Hodges & Lehmann 1963.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nephoscope.core.model import Better, Estimate
from nephoscope.core.records import dataclass
from nephoscope.stats import compare
from nephoscope.stats.compare import MARGIN, TwoSampleComparison
from nephoscope.stats.statistics import means, variation
from nephoscope.stats.statistics.bootstrap import interval_of_ratio, resample
from nephoscope.stats.statistics.dependence import ASSUMED
from nephoscope.stats.statistics.estimates import minimum_n
from nephoscope.stats.statistics.histograms import (
    LEAST_TRIALS,
    Trial,
    draws,
    pooled,
    quantile_of_counts,
)
from nephoscope.stats.statistics.reach import range_of_ratios, without_wide_interval
from nephoscope.stats.statistics.values import Array, Numbers, Refused, clean, percent

NAMES = ("quiet", "loaded")
RESAMPLES = 1999


@dataclass(frozen=True, slots=True)
class Triple:
    """One loaded trial with the quiet it is held against; all of one round and in one unit.

    before, after: the baseline trials right before and right after it; None where there is none.
    baseline: their geometric mean, or what stands in for it (the median of the round's own).
    """

    round: int
    loaded: float
    baseline: float
    before: float | None = None
    after: float | None = None

    @property
    def sides(self) -> list[float]:
        """Returns the baseline trials right before and after it, as far as there are any."""
        return [value for value in (self.before, self.after) if value is not None]


def around(round_number: int, loaded: float, before: float | None, after: float | None) -> Triple:
    """A loaded trial with its neighbours. Raises Refused without an adjacent baseline trial."""
    baseline_values = [value for value in (before, after) if value is not None]
    if not baseline_values:
        raise Refused(f"Round {round_number} has no baseline trial adjacent to the loaded one.")
    positive = all(value > 0 for value in baseline_values)
    logarithms = map(math.log, baseline_values)
    baseline = (
        math.exp(math.fsum(logarithms) / len(baseline_values))
        if positive
        else math.fsum(baseline_values) / len(baseline_values)
    )
    return Triple(round_number, loaded, baseline, before, after)


def factor(
    triples: Sequence[Triple],
    *,
    better: Better,
    margin: float = MARGIN,
    confidence: float = 0.95,
    prior: Array = ASSUMED,
) -> TwoSampleComparison:
    """Loaded against quiet, paired by round; `turned` makes its ratio an interference factor.

    The interval is Wilcoxon's signed-rank one of the log ratios (6 rounds at 95 %). prior: of
    their autocorrelation, see `dependence`.
    Raises Refused without triples.
    """
    return compare.paired(
        [triple.baseline for triple in triples],
        [triple.loaded for triple in triples],
        better=better,
        margin=margin,
        unit="ratio",
        confidence=confidence,
        names=NAMES,
        prior=prior,
    )


def turned(ratio: Estimate | None, better: Better) -> Estimate | None:
    """A ratio to the quiet (or any baseline) turned so that above 1 is worse: of rates, its
    inverse; None without a ratio and for metrics of which neither direction is good."""
    if ratio is None or better is Better.NONE:
        return None
    if better is Better.LOWER:
        return replace(ratio, method=f"interference factor; {ratio.method}")
    if not ratio.value:
        return None

    def inverse(side: float | None) -> float | None:
        return 1 / side if side else None

    return replace(
        ratio,
        value=1 / ratio.value,
        low=inverse(ratio.high),
        high=inverse(ratio.low),
        method=f"interference factor, the inverse of: {ratio.method}",
    )


def log_factors(triples: Sequence[Triple], better: Better) -> Array:
    """The logarithm of each round's factor, shape (rounds,). Raises Refused for values <= 0."""
    pairs = np.array([(triple.loaded, triple.baseline) for triple in triples]).reshape(-1, 2)
    if not np.all((pairs > 0) & np.isfinite(pairs)):
        raise Refused("A value is zero, negative or infinite: there is no factor of it.")
    logs = np.log(pairs[:, 0]) - np.log(pairs[:, 1])
    return np.asarray(-logs if better is Better.HIGHER else logs)


def factor_of_means(
    triples: Sequence[Triple], *, better: Better, confidence: float = 0.95
) -> Estimate:
    """Ratio of mean times (of rates: of their inverses) with Fieller's interval for pairs.

    Raises Refused below 2 rounds and for values that are not above zero.
    """
    log_factors(triples, better)  # refuses what has no ratio
    loaded = np.array([triple.loaded for triple in triples])
    baseline = np.array([_baseline_mean(triple, better) for triple in triples])
    if better is Better.HIGHER:
        loaded = 1 / loaded
    over, under = means.summary(loaded), means.summary(baseline)
    shared = float(np.sum((loaded - over.mean) * (baseline - under.mean)) / (over.n - 1))
    bounds = means.fieller(under, over, confidence, covariance=shared)
    kind = "harmonic" if better is Better.HIGHER else "arithmetic"
    method = f"interference factor of {kind} means; Fieller, pairs by round"
    note = "" if bounds else "Unbounded: the baseline mean is not distinguishable from zero."
    low, high = bounds or (None, None)
    factor = Estimate(over.mean / under.mean, low, high, confidence, over.n, "ratio", method, note)
    return without_wide_interval(factor, range_of_ratios(baseline, loaded))


def _baseline_mean(triple: Triple, better: Better) -> float:
    """The mean quiet time of a triple; of rates the mean of their inverses."""
    baselines = triple.sides or [triple.baseline]
    if better is Better.HIGHER:
        baselines = [1 / value for value in baselines]
    return math.fsum(baselines) / len(baselines)


def factor_of_percentile(
    rounds: Sequence[tuple[Trial, Trial]],
    q: float,
    *,
    confidence: float = 0.95,
    seed: int = 1,
    resamples: int = RESAMPLES,
) -> Estimate:
    """Percentile of all loaded requests over that of all quiet ones, both of merged histograms.

    rounds: (quiet histogram, loaded histogram) of each round; of times, so that above 1 is worse.
    The interval resamples whole rounds: requests of one trial share its luck, trials of one round
    its hour. Raises Refused below 6 rounds, and below `minimum_n(q)` requests on either side.
    """
    if len(rounds) < LEAST_TRIALS:
        raise Refused(
            f"p{100 * q:g} of {len(rounds)} rounds has no interval; it needs {LEAST_TRIALS}."
        )
    sides = ([each[0] for each in rounds], [each[1] for each in rounds])
    drawn = draws(len(rounds), seed, resamples)
    points, replicas = [], []
    for name, trials in zip(NAMES, sides, strict=True):
        side = pooled(trials)
        values, counts = side.merged
        total, need = int(counts.sum()), minimum_n(q, confidence)
        if total < need:
            raise Refused(
                f"p{100 * q:g} of {total} {name} requests has no interval at "
                f"{percent(confidence)}; it needs {need}."
            )
        points.append(quantile_of_counts(values, counts, q))
        replicas.append(side.quantiles_of_draws(q, drawn))
    under, over = points
    if under <= 0 or not math.isfinite(over):
        raise Refused(f"p{100 * q:g} is zero or lies among the timeouts: there is no ratio.")
    low, top = interval_of_ratio(replicas[1], replicas[0], over / under, len(rounds), confidence)
    method = (
        f"ratio of p{100 * q:g} of merged histograms, nearest rank; bootstrap of {len(rounds)} "
        f"rounds, {resamples} resamples, seed {seed}"
    )
    note = "" if top is not None else "The upper bound lies beyond the timeout."
    return Estimate(over / under, low, top, confidence, len(rounds), "ratio", method, note)


@dataclass(frozen=True, slots=True)
class Variation:
    """Variability of the victim beside the load; ratios to quiet, above 1 is less steady.

    cv: of the coefficients of variation. robust: of the robust ones. None where refused; `why`.
    """

    cv: Estimate | None
    robust: Estimate | None
    why: str = ""


def variation_factor(
    baseline: Numbers, loaded: Numbers, *, rounds: int, confidence: float = 0.95, seed: int = 1
) -> Variation:
    """Coefficient of variation beside the load over that in quiet, classic and robust.

    baseline, loaded: one value a trial; the baseline may hold several a round, so that the interval
    rests on `rounds`, the least number of independent repetitions of the two. Where both sides look
    normal the interval of the classic one joins Vangel's two (see `variation_ratio`), else it is a
    bootstrap.
    """
    a, b = clean(baseline), clean(loaded)
    try:
        robust = variation.ratio_of_robust_cv(a, b, confidence=confidence, seed=seed)
        robust = replace(robust, n=rounds)
    except Refused as reason:
        return Variation(None, None, str(reason))
    below, above = variation.cv_point(a), variation.cv_point(b)
    if not below or above is None:
        why = "The baseline trials do not vary, or a mean is not distinguishable from zero."
        return Variation(None, robust, why)
    if variation.is_normal(a) and variation.is_normal(b):
        return Variation(variation_ratio(below, rounds, above, rounds, confidence), robust)
    replicas = [
        resample(side, variation.cv_rows, seed=seed + i, resamples=RESAMPLES)
        for i, side in enumerate((a, b))
    ]
    low, top = interval_of_ratio(replicas[1], replicas[0], above / below, rounds, confidence)
    method = f"ratio of s / mean; bootstrap, {RESAMPLES} resamples, seed {seed}"
    note = (
        "" if top is not None else "The upper bound is infinite: the baseline may not vary at all."
    )
    cov_ratio = Estimate(above / below, low, top, confidence, rounds, "ratio", method, note)
    return Variation(cov_ratio, robust)


def variation_ratio(below: float, n_a: int, above: float, n_b: int, confidence: float) -> Estimate:
    """Ratio of two coefficients of variation of near-normal values.

    Vangel's two intervals are joined on logarithms: each side's distance from its point, squared,
    adds up (the method of variance estimates recovery; Zou & Donner 2008).
    """
    (l1, u1), (l2, u2) = (
        variation.vangel(cv, n, confidence) for cv, n in ((below, n_a), (above, n_b))
    )
    value = above / below
    down = math.hypot(math.log(above / l2) if above else 0.0, math.log(u1 / below))
    up = math.hypot(math.log(u2 / above) if above else 0.0, math.log(below / l1))
    high = value * math.exp(up) if math.isfinite(up) else None
    method = "ratio of s / mean; Vangel's intervals joined"
    note = "" if high is not None else "The upper bound is infinite."
    return Estimate(
        value, value * math.exp(-down), high, confidence, min(n_a, n_b), "ratio", method, note
    )
