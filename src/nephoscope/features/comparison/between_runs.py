"""Compares two runs that were not interleaved: the interval includes the variance between runs.

The unit of replication is the run (launch, hour), not the repetition: sequential blocks declare
identical systems different more often than not when the machine drifts. Sources: Abedi & Brecht,
ICPE 2017; scaled inverse chi-square prior of a normal variance: Gelman et al., Bayesian Data
Analysis, 3rd ed., sections 2.6 and 3.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nephoscope.core.model import Better, Estimate
from nephoscope.core.naming import plural
from nephoscope.features.comparison.prior import Prior
from nephoscope.stats.compare import MARGIN, TwoSampleComparison, independent
from nephoscope.stats.shift_scales import band_estimate, scale_of
from nephoscope.stats.statistics.dependence import ASSUMED
from nephoscope.stats.statistics.means import t_quantile
from nephoscope.stats.statistics.values import Array, Numbers, clean, finite, percent
from nephoscope.stats.verdicts import (
    NO_BAND,
    Band,
    Word,
    equivalence_confidence,
    judge,
    say,
    verdict_of,
)

REPLACED_AT = 5
"""Earlier runs of one machine with which nothing is assumed any more."""
BLOCKS = 4
LEAST_PER_BLOCK = 2

NOT_INTERLEAVED = (
    "The runs were not interleaved, so any change over time counts as a difference; measure "
    "them in one plan to exclude it."
)


def separate_runs(
    a: Numbers,
    b: Numbers,
    a_history: Numbers = (),
    b_history: Numbers = (),
    *,
    prior: Prior,
    same_machine: bool = False,
    better: Better,
    margin: float = MARGIN,
    unit: str = "none",
    confidence: float = 0.95,
    names: tuple[str, str] = ("A", "B"),
    dependence: Array = ASSUMED,
    kin: Sequence[Numbers] = (),
) -> TwoSampleComparison:
    """Compare two runs that were made one after the other.

    a, b: one value a repetition, in order of time. a_history, b_history: the medians of other runs
    of the same machine and setting as A's, and as B's. prior: what is assumed of the variance of
    run medians; the runs of the history replace it as they become more. same_machine: both
    histories are one and the same, of the machine that both runs measured. Neither run then joins
    it: the change that is looked for lies between it and one of the two, nobody knows which.
    dependence: distribution of the autocorrelation of repetitions (`independent`'s prior). kin:
    groups of medians of other machines of the same class, each about a mean of its own; they count
    until the machine itself has REPLACED_AT runs.
    The interval is Student's, about the ratio, with the posterior variance; it is never narrower
    than that of `independent`, and without a history not narrower than the drift between blocks
    inside the runs allows. Without a history equivalence is never claimed.
    """
    plain = independent(
        a,
        b,
        better=better,
        margin=margin,
        unit=unit,
        confidence=confidence,
        names=names,
        prior=dependence,
    )
    values_a, values_b = clean(a), clean(b)
    history = [
        finite(medians, least=0, statistic="variance between runs")
        for medians in (a_history, b_history)
    ]
    scale = scale_of(values_a, values_b)
    if scale is None or plain.ratio is None or plain.ratio.low is None:
        return replace(plain, warnings=(NOT_INTERLEAVED, *plain.warnings))
    groups = history[:1]
    if not same_machine:
        groups = [
            np.append(medians, np.median(values))
            for medians, values in zip(history, (values_a, values_b), strict=True)
        ]
    sd, df, own = posterior(groups, prior)
    of_kin = [finite(medians, least=0, statistic="variance between runs") for medians in kin]
    of_kin = [group for group in of_kin if group.size > 1] if own < REPLACED_AT - 1 else []
    if of_kin:
        sd, df, own = posterior([*groups, *of_kin], prior)
    level = equivalence_confidence(confidence)
    half, narrow = (t_quantile(df, at) * math.sqrt(2) * sd for at in (confidence, level))
    words = assumption(prior)
    if own:
        runs = history[0].size + (0 if same_machine else history[1].size)
        sources = [plural(runs, "earlier run")] if runs else []
        if of_kin:
            count = sum(group.size for group in of_kin)
            sources.append(f"{plural(count, 'run')} of other machines of this class")
        sources += [words] if df > own else []
        words = f"{percent(sd, 2)}, from {' and '.join(sources)}"
    words = f"a variation from run to run of {words}"
    if not own:
        half = max(half, _drift(scale.a, scale.b, confidence))

    value = plain.ratio.value
    centre = scale.to_shift(value) if value > 0 else -math.inf
    band = _union(plain.ratio, scale.band(centre - half, centre + half))
    equivalence = _union(plain.equivalence, scale.band(centre - narrow, centre + narrow))
    word = judge(band, equivalence, better, margin)
    sentence = say(word, value, band, equivalence, margin, confidence, names)
    if not own:
        word, sentence = _without_history(word, sentence, names, sd)
    method = f"Hodges-Lehmann shift {scale.words}; {words}"
    ratio = band_estimate(value, band, confidence, plain.ratio.n, method)
    inside = band_estimate(value, equivalence, level, plain.ratio.n, method)
    return replace(
        plain,
        ratio=ratio,
        equivalence=inside,
        p_between_runs=_p(centre, half, df, confidence),
        verdict=verdict_of(word, sentence, ratio, inside),
        warnings=(NOT_INTERLEAVED, f"The interval includes {words}.", *plain.warnings),
    )


def posterior(groups: Sequence[Array], prior: Prior) -> tuple[float, float, int]:
    """Returns the standard deviation of a run's median, relative, its degrees of freedom, and
    those of them that come from the runs.

    groups: medians of runs; those of one group vary about one mean, which is not known. The weight
    of the prior falls in equal steps to none at REPLACED_AT runs of one group: it describes other
    machines, and one that is far too wide or too narrow for this one would never be outvoted.
    """
    deviations = [_relative(group) for group in groups if group.size > 1]
    squares = sum(float(np.sum((group - group.mean()) ** 2)) for group in deviations)
    own = sum(group.size - 1 for group in deviations)
    assumed = prior.df * max(0.0, 1 - own / (REPLACED_AT - 1))
    df = own + assumed
    return math.sqrt((assumed * prior.sd**2 + squares) / df), df, own


def assumption(prior: Prior) -> str:
    """Returns the prior in words."""
    return f"{percent(prior.sd, 2)} assumed (weight {prior.df:.2g} runs; {prior.source})"


def _relative(medians: Array) -> Array:
    """Logarithms, or shares of their median where not all are above zero."""
    if np.all(medians > 0):
        return np.log(medians)
    return medians / (abs(float(np.median(medians))) or 1.0)


def _without_history(
    word: Word, sentence: str, names: tuple[str, str], sd: float
) -> tuple[Word, str]:
    """Returns what an assumed variance between runs allows to say."""
    assumed = f"assuming a variation from run to run of {percent(sd, 2)}"
    if word in {"better", "worse"}:
        return word, f"{sentence.removesuffix('.')}, {assumed}."
    if word == "inconclusive":
        return word, sentence.replace("more repetitions would narrow it", assumed)
    return "inconclusive", (
        f"Undecided: {names[1]} looks like {names[0]}, but two runs do not show the "
        "variance between runs; interleave them in one plan, or repeat each run."
    )


def _drift(a: Array, b: Array, confidence: float) -> float:
    """Half the width of the interval that the drift between blocks inside each run allows.

    A drift slow enough to move one block against the next moves one run against the next at least
    as far, so that a run is worth no more than one of its blocks.
    """
    if min(a.size, b.size) < BLOCKS * LEAST_PER_BLOCK:
        return 0.0
    variance = 0.0
    for values in (a, b):
        medians = np.array([np.median(block) for block in np.array_split(values, BLOCKS)])
        variance += float(np.var(medians, ddof=1))
    return t_quantile(2 * (BLOCKS - 1), confidence) * math.sqrt(variance)


def _union(estimate: Estimate | None, band: Band) -> Band:
    """The wider of both on either side."""
    if estimate is None or estimate.low is None:
        return NO_BAND
    high = math.inf if estimate.high is None else estimate.high
    return Band(min(estimate.low, band.low), max(high, band.high))


def _p(shift: float, half: float, df: float, confidence: float) -> float:
    """Two-sided p of no difference beyond that from run to run.

    half: half the width of the interval at that confidence.
    """
    from scipy.special import stdtr

    if half == 0:
        return 1.0 if shift == 0 else 0.0
    return float(2 * stdtr(df, -abs(shift) / half * t_quantile(df, confidence)))
