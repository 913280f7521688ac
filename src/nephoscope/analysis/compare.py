"""Is B better than A? Effect with interval, tests of ranks and of means, and a verdict.

The verdict rests on the Hodges-Lehmann shift of the logarithms, told as a ratio b / a: one
outlier does not move it, it does not care whether a rate or a time was measured, and its interval
covers (tests/analysis/test_compare.py). Means stand beside it and a disagreement is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nephoscope.analysis.shift_scales import CENSORED, Scale, band_estimate, scale_of
from nephoscope.analysis.statistics import dependence, multiplicity, ranks, ratios
from nephoscope.analysis.statistics.values import Array, Numbers, Refused, all_equal, clean, percent
from nephoscope.analysis.verdicts import (
    Word,
    equivalence_confidence,
    judge,
    margin_bounds,
    say,
    verdict_of,
)
from nephoscope.model import Better, Estimate, Verdict, stated

LEAST_INDEPENDENT = 4
"""At 3 against 3 the exact rank test cannot go below p = 0.1."""
LEAST_PAIRED = 6
"""With 5 pairs the signed-rank test cannot go below p = 0.0625."""
MARGIN = 0.03


@dataclass(frozen=True, slots=True)
class Comparison:
    """B against A. Estimates of ratios have the unit `ratio`, `difference` that of the metric.

    ratio: Hodges-Lehmann ratio b / a, carries the verdict; None where a ratio has no meaning.
    equivalence: the same at 1 - 2 alpha (90 %), which the equivalence test looks at.
    difference: Hodges-Lehmann shift b - a. ratio_of_means: Fieller (harmonic means for rates),
    None when unbounded. ratio_t: geometric mean ratio with the t interval of the logarithms (paired
    or Welch). cliffs_delta: 2 A12 - 1. a12: P(b > a) + P(b = a) / 2. tost_p: rank equivalence test.
    p_holm: p within the whole report, set by `over_report`.
    """

    paired: bool
    better: Better
    margin: float
    n_a: int
    n_b: int
    verdict: Verdict
    ratio: Estimate | None
    equivalence: Estimate | None
    difference: Estimate | None
    ratio_of_means: Estimate | None = None
    ratio_t: Estimate | None = None
    ratio_of_medians: float | None = None
    p_welch: float | None = None
    p_mann_whitney: float | None = None
    p_brunner_munzel: float | None = None
    p_wilcoxon: float | None = None
    p_paired_t: float | None = None
    p_between_runs: float | None = None
    p_holm: float | None = None
    cliffs_delta: float | None = None
    a12: float | None = None
    tost_p: float | None = None
    warnings: tuple[str, ...] = ()

    @stated
    def p(self) -> float | None:
        """The p that belongs to the verdict's interval."""
        for p in (self.p_between_runs, self.p_wilcoxon, self.p_mann_whitney):
            if p is not None:
                return p
        return None


def independent(
    a: Numbers,
    b: Numbers,
    *,
    better: Better,
    margin: float = MARGIN,
    unit: str = "none",
    confidence: float = 0.95,
    names: tuple[str, str] = ("A", "B"),
    replications: bool = False,
    prior: Array = dependence.ASSUMED,
) -> Comparison:
    """Compare two unpaired samples, one value a repetition in order of execution.

    The interval of the ratio is Hodges and Lehmann's on logarithms (or, where values are not all
    above zero, on shares of A's median), made safe against unequal spreads, and as wide as the
    dependence of the repetitions requires (`prior`: of their autocorrelation); not so replications
    of a simulation, whose chance is their own. Below 4 a side there is no verdict.
    Raises Refused for an empty side and for not-a-number.
    """
    one, other = clean(a), clean(b)
    series = zip(names, (one, other), strict=True)
    effects = [_dependence(name, side, None if replications else prior) for name, side in series]
    warnings = [text for text, _ in effects if text]
    scale = scale_of(one, other)

    def widening(level: float) -> tuple[float, float]:
        return effects[0][1](level), effects[1][1](level)

    def interval(x: Array, y: Array, level: float) -> ranks.Shift:
        return ranks.hodges_lehmann(x, y, level, widening=widening(level), unequal_spread=True)

    def shift(level: float) -> ranks.Shift:
        assert scale is not None
        return interval(scale.a, scale.b, level)

    draft = _draft(scale, shift, one, other, better, margin, confidence, names, LEAST_INDEPENDENT)
    test = ranks.mann_whitney(one, other)
    a12 = test.statistic / (one.size * other.size)
    result = replace(
        draft,
        difference=_difference(one, other, unit, confidence, interval),
        ratio_of_means=ratios.ratio_of_means(one, other, unit, confidence, widening(confidence)),
        ratio_t=ratios.log_welch(one, other, confidence, widening(confidence)),
        p_welch=ratios.p_welch(one, other),
        p_mann_whitney=test.p,
        p_brunner_munzel=ranks.brunner_munzel(one, other),
        a12=a12,
        cliffs_delta=2 * a12 - 1,
        tost_p=_tost(scale, margin, ranks.mann_whitney) if scale else None,
    )
    return replace(
        result, warnings=(*warnings, *draft.warnings, *_disagreement(result, confidence))
    )


def paired(
    a: Numbers,
    b: Numbers,
    *,
    better: Better,
    margin: float = MARGIN,
    unit: str = "none",
    confidence: float = 0.95,
    names: tuple[str, str] = ("A", "B"),
    replications: bool = False,
    prior: Array = dependence.ASSUMED,
) -> Comparison:
    """Compare two samples taken in the same rounds (interleaved trials, duet): a[i] with b[i].

    What a round did to both sides cancels. The verdict's interval is Wilcoxon's signed-rank one
    of the log ratios (6 rounds at 95 %), widened as that of `independent`; `ratio_t` is the t
    interval beside it. Raises Refused for unequal lengths, no rounds, and not-a-number.
    """
    one, other = clean(a), clean(b)
    if one.size != other.size:
        raise Refused(
            f"{one.size} and {other.size} values are no pairs; leave out the rounds in which one "
            "side is missing, or compare them unpaired."
        )
    scale = scale_of(one, other)
    log_ratios = scale.b - scale.a if scale else other - one
    text, widening = _dependence("The rounds' ratios", log_ratios, None if replications else prior)
    warnings = [text] if text else []

    def interval(x: Array, y: Array, level: float) -> ranks.Shift:
        return ranks.one_sample_shift(y - x, level, widening=widening(level))

    def shift(level: float) -> ranks.Shift:
        return ranks.one_sample_shift(log_ratios, level, widening=widening(level))

    draft = _draft(scale, shift, one, other, better, margin, confidence, names, LEAST_PAIRED)
    a12 = ranks.mann_whitney(one, other).statistic / (one.size * other.size)
    ratio_t, p_t = ratios.log_t(one, other, confidence, widening(confidence))
    result = replace(
        draft,
        paired=True,
        difference=_difference(one, other, unit, confidence, interval),
        ratio_t=ratio_t,
        p_paired_t=p_t,
        p_wilcoxon=ranks.signed_rank(log_ratios).p,
        a12=a12,
        cliffs_delta=2 * a12 - 1,
        tost_p=_tost(scale, margin, lambda x, y: ranks.signed_rank(y - x)) if scale else None,
    )
    return replace(
        result, warnings=(*warnings, *draft.warnings, *_disagreement(result, confidence))
    )


def over_report(comparisons: Sequence[Comparison], *, confidence: float = 0.95) -> list[Comparison]:
    """Holm's correction over one report: better or worse must hold among all that was asked.

    Sets p_holm; a verdict of better or worse whose p_holm is above 1 - confidence becomes
    inconclusive, and its sentence says so. Comparisons without a p do not count.
    """
    asked = [i for i, c in enumerate(comparisons) if c.p is not None]
    adjusted = multiplicity.holm([comparisons[i].p or 0.0 for i in asked])
    found = list(comparisons)
    for i, p in zip(asked, adjusted, strict=True):
        old = found[i]
        verdict = old.verdict
        if verdict.word in {"better", "worse"} and p > 1 - confidence:
            sentence = (
                f"Undecided: alone it would be '{verdict.word}', but among {len(asked)} "
                f"comparisons chance alone gives such a one (p = {p:.2g} after Holm); more rounds "
                "decide."
            )
            verdict = Verdict("inconclusive", sentence, verdict.estimates)
        found[i] = replace(old, p_holm=p, verdict=verdict)
    return found


def _dependence(
    name: str, values: Array, prior: Array | None
) -> tuple[str, Callable[[float], float]]:
    """What the dependence of a series does to an interval: a warning, and the widening by level.

    prior: None for values that cannot depend on each other.
    """
    if prior is None or all_equal(values) or values.size < 2:
        return "", lambda _: 1.0
    weights = dependence.posterior(values, prior)
    text = dependence.sentence(values.size, weights)
    return (
        f"{name}: {text}" if text else "",
        lambda level: dependence.widening(values.size, weights, level),
    )


def _draft(
    scale: Scale | None,
    shift: Callable[[float], ranks.Shift],
    a: Array,
    b: Array,
    better: Better,
    margin: float,
    confidence: float,
    names: tuple[str, str],
    least: int,
) -> Comparison:
    """Ratio, equivalence interval and verdict; the caller adds what is special to its design."""
    margin_bounds(margin)  # a margin without meaning is refused before anything is computed
    empty = Comparison(
        False,
        better,
        margin,
        int(a.size),
        int(b.size),
        Verdict("inconclusive", ""),
        None,
        None,
        None,
    )
    if scale is None:
        sentence = (
            f"No verdict: {names[0]}'s median is zero or infinite, so a relative margin has no "
            "meaning; look at the difference."
        )
        return replace(empty, verdict=Verdict("inconclusive", sentence))
    level = equivalence_confidence(confidence)
    at, narrow = shift(confidence), shift(level)
    value, band = scale.ratio(at.value), scale.band(at.low, at.high)
    equivalence = scale.band(narrow.low, narrow.high)
    n, method = min(empty.n_a, empty.n_b), f"Hodges-Lehmann shift {scale.words}"
    ratio = band_estimate(value, band, confidence, n, method)
    inside = band_estimate(value, equivalence, level, n, method)
    word: Word = judge(band, equivalence, better, margin)
    sentence = say(word, value, band, equivalence, margin, confidence, better, names)
    lacking = _lacking(empty, at, least, confidence)
    if lacking:
        word, sentence = "inconclusive", lacking
    flat = "Neither side varies: the interval has no width, and the timer or counter may be too "
    middle = float(np.median(a)) if np.all(np.isfinite(a)) and np.all(np.isfinite(b)) else 0.0
    return replace(
        empty,
        verdict=verdict_of(word, sentence, ratio, inside),
        ratio=ratio,
        equivalence=inside,
        ratio_of_medians=float(np.median(b)) / middle if middle else None,
        warnings=(flat + "coarse to show the variation.",) if band.low == band.high else (),
    )


def _lacking(sizes: Comparison, at: ranks.Shift, least: int, confidence: float) -> str:
    """The sentence for too few repetitions to conclude anything; empty when there are enough."""
    head = f"No verdict: {sizes.n_a} and {sizes.n_b} repetitions"
    if min(sizes.n_a, sizes.n_b) < least:
        return (
            f"{head} cannot show a difference at {percent(confidence)}; measure at least {least} "
            "a side."
        )
    if at.low is None:
        return (
            f"{head}, as far as they are independent, give no interval at {percent(confidence)}; "
            "measure more of them."
        )
    return ""


def _difference(
    a: Array,
    b: Array,
    unit: str,
    confidence: float,
    shift: Callable[[Array, Array, float], ranks.Shift],
) -> Estimate | None:
    """Hodges-Lehmann difference b - a in the metric's unit; None when it is infinite."""
    both = np.concatenate([a, b])
    reach = float(np.max(np.abs(both[np.isfinite(both)]), initial=1.0)) * CENSORED
    x, y = (np.where(np.isinf(v), reach, v) for v in (a, b))
    at = shift(x, y, confidence)
    if abs(at.value) > reach / 4:
        return None
    low, high = (None if s is None or abs(s) > reach / 4 else s for s in (at.low, at.high))
    note = "" if low is not None and high is not None else "No interval on the side left out."
    n = int(min(a.size, b.size))
    return Estimate(at.value, low, high, confidence, n, unit, "Hodges-Lehmann shift b - a", note)


def _tost(scale: Scale, margin: float, test: Callable[[Array, Array], ranks.RankTest]) -> float:
    """The p of two one-sided rank tests that the ratio lies inside the margin."""
    lower, upper = (scale.to_shift(bound) for bound in margin_bounds(margin))
    above = test(scale.a, scale.b - lower).p_greater
    below = test(scale.a, scale.b - upper).p_less
    return max(above, below)


def _disagreement(found: Comparison, confidence: float) -> list[str]:
    """Said when ranks and means draw opposite conclusions: outliers, or skewed values."""
    rank_p, mean_p = (
        (found.p_wilcoxon, found.p_paired_t)
        if found.paired
        else (found.p_mann_whitney, found.p_welch)
    )
    if rank_p is None or mean_p is None:
        return []
    alpha = 1 - confidence
    if (rank_p < alpha) == (mean_p < alpha):
        return []
    return [
        f"The rank test (p = {rank_p:.2g}) and the test of means (p = {mean_p:.2g}) disagree: a "
        "few repetitions are far off; look at the values before relying on means."
    ]
