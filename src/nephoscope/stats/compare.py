"""Is B better than A? Effect with interval, tests of ranks and of means, and a verdict.

The verdict rests on the Hodges-Lehmann shift of the logarithms, told as a ratio b / a: one
outlier does not move it, it does not care whether a rate or a time was measured, and its interval
covers (tests/stats/test_compare.py). Means stand beside it and a disagreement is said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from nephoscope.core.model import Better, Estimate, MetricResult, Verdict, stated
from nephoscope.core.records import dataclass
from nephoscope.stats.shift_intervals import TOO_WIDE, Interval, allow_for_dependence, interval_of
from nephoscope.stats.shift_scales import CENSORED, Scale, band_estimate, scale_of
from nephoscope.stats.statistics import dependence, multiplicity, ranks, ratios
from nephoscope.stats.statistics.reach import NOT_ENOUGH
from nephoscope.stats.statistics.values import Array, Numbers, Refused, clean, percent
from nephoscope.stats.verdicts import (
    NO_BAND,
    Band,
    Word,
    change,
    equivalence_confidence,
    judge,
    margin_bounds,
    say,
    verdict_of,
)

LEAST_INDEPENDENT = 4
"""At 3 against 3 the exact rank test cannot go below p = 0.1."""
LEAST_PAIRED = 6
"""With 5 pairs the signed-rank test cannot go below p = 0.0625."""
MARGIN = 0.03
SMALLEST_P = 1e-12
HODGES_LEHMANN = "Hodges-Lehmann shift"
ANYTIME = "mean shift with a confidence sequence"
FLAT = (
    "Neither side varies: the interval has no width, and the timer or counter may be too coarse to "
    "show the variation."
)


@dataclass(frozen=True, slots=True)
class TwoSampleComparison:
    """B against A. Estimates of ratios have the unit `ratio`, `difference` that of the metric.

    ratio: Hodges-Lehmann ratio b / a, carries the verdict; None where a ratio has no meaning.
    equivalence: the same at 1 - 2 alpha (90 %), which the equivalence test looks at.
    difference: Hodges-Lehmann shift b - a. ratio_of_means: Fieller (harmonic means for rates),
    None when unbounded. ratio_t: geometric mean ratio with the t interval of the logarithms (paired
    or Welch). p_ratio: 1 less the largest confidence at which the interval of `ratio` excludes 1;
    it allows for dependence as the interval does. tost_p: the same of the equivalence test.
    p_welch … p_paired_t: tests for independent repetitions, which decide nothing. cliffs_delta:
    2 A12 - 1. a12: P(b > a) + P(b = a) / 2. p_holm: p within the report, set by `over_report`.
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
    p_ratio: float | None = None
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

    @property
    def least(self) -> int:
        """Returns the repetitions a side below which there is no verdict."""
        return LEAST_PAIRED if self.paired else LEAST_INDEPENDENT

    @stated
    def p(self) -> float | None:
        """The p that belongs to the verdict's interval."""
        p_values = [p for p in (self.p_ratio, self.p_between_runs) if p is not None]
        return max(p_values) if p_values else None


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
) -> TwoSampleComparison:
    """Compare two unpaired samples, one value a repetition in order of execution.

    The interval of the ratio is Hodges and Lehmann's on logarithms (or, where values are not all
    above zero, on shares of A's median), made safe against unequal spreads, and as wide as the
    dependence of the repetitions requires (`prior`: of their autocorrelation); not so replications
    of a simulation, whose chance is their own. Below 4 a side there is no verdict.
    Raises Refused for an empty side and for not-a-number.
    """
    values_a, values_b = clean(a), clean(b)
    scale = scale_of(values_a, values_b)
    series = (scale.a, scale.b) if scale else (values_a, values_b)
    texts, widening = allow_for_dependence(names, series, None if replications else prior)
    interval = interval_of(widening, paired=False)
    test = ranks.mann_whitney(values_a, values_b)
    draft = _draft(
        values_a, values_b, scale, interval, test.statistic, better, margin, unit, confidence,
        names, LEAST_INDEPENDENT, HODGES_LEHMANN,
    )  # fmt: skip
    factor = widening(confidence)
    result = replace(
        draft,
        ratio_of_means=ratios.ratio_of_means(values_a, values_b, unit, confidence, factor),
        ratio_t=ratios.log_welch(values_a, values_b, confidence, factor),
        p_welch=ratios.p_welch(values_a, values_b),
        p_mann_whitney=test.p,
        p_brunner_munzel=ranks.brunner_munzel(values_a, values_b),
    )
    return _with_warnings(result, texts, result.ratio_of_means)


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
    is_anytime: bool = False,
) -> TwoSampleComparison:
    """Compare two samples taken in the same rounds (interleaved trials, duet): a[i] with b[i].

    What a round did to both sides cancels. The verdict's interval is Wilcoxon's signed-rank one
    of the log ratios (6 rounds at 95 %), widened as that of `independent`; `ratio_t` is the t
    interval beside it. is_anytime: the interval is `anytime`'s instead, so that measuring may have
    ended because of it. Raises Refused for unequal lengths, no rounds, and not-a-number.
    """
    values_a, values_b = clean(a), clean(b)
    if values_a.size != values_b.size:
        raise Refused(
            f"{values_a.size} and {values_b.size} values are no pairs; leave out the rounds in "
            "which one side is missing, or compare them unpaired."
        )
    scale, shifts = scale_of(values_a, values_b), round_shifts(values_a, values_b)
    texts, widening = allow_for_dependence(
        ("The rounds' ratios",), (shifts,), None if replications else prior
    )
    interval = interval_of(widening, paired=True, is_anytime=is_anytime)
    u = ranks.mann_whitney(values_a, values_b).statistic
    draft = _draft(
        values_a, values_b, scale, interval, u, better, margin, unit, confidence,
        names, LEAST_PAIRED, ANYTIME if is_anytime else HODGES_LEHMANN,
    )  # fmt: skip
    ratio_t, p_t = ratios.log_t(values_a, values_b, confidence, widening(confidence))
    result = replace(
        draft,
        paired=True,
        ratio_t=ratio_t,
        p_paired_t=p_t,
        p_wilcoxon=ranks.signed_rank(shifts).p,
    )
    return _with_warnings(result, texts, ratio_t)


def round_shifts(a: Array, b: Array) -> Array:
    """Returns what the rounds of a paired comparison are judged by: mostly their log ratios."""
    scale = scale_of(a, b)
    return scale.b - scale.a if scale else b - a


def common_rounds(a: Mapping[int, float], b: Mapping[int, float]) -> tuple[Array, Array]:
    """Returns the values of the rounds that both sides have, in the order of rounds."""
    rounds = sorted(a.keys() & b.keys())
    return np.array([a[r] for r in rounds]), np.array([b[r] for r in rounds])


def shared_rounds(a: MetricResult, b: MetricResult) -> tuple[Array, Array]:
    """Returns `common_rounds` of two lines."""
    return common_rounds(a.by_round, b.by_round)


def over_report(
    comparisons: Sequence[TwoSampleComparison],
    *,
    confidence: float = 0.95,
    primary: Sequence[bool] = (),
) -> list[TwoSampleComparison]:
    """Holm's correction over one report: better or worse must hold among all that was asked.

    primary: which comparisons are the main ones and have half of the error rate, however many
    others there are; without it all are alike. Sets p_holm; a verdict of better or worse whose
    p_holm is above 1 - confidence becomes inconclusive, and its sentence says so. Comparisons
    without a p do not count.
    """
    tested = [i for i, c in enumerate(comparisons) if c.p is not None]
    weights = error_shares([primary[i] for i in tested]) if primary else None
    adjusted = multiplicity.holm([comparisons[i].p or 0.0 for i in tested], weights)
    corrected = list(comparisons)
    for i, p in zip(tested, adjusted, strict=True):
        old = corrected[i]
        verdict = old.verdict
        if verdict.word in {"better", "worse"} and p > 1 - confidence:
            sentence = (
                f"Undecided: alone it would be '{verdict.word}', but among {len(tested)} "
                f"comparisons chance alone gives such a one (p = {p:.2g} after Holm); more rounds "
                "decide."
            )
            verdict = Verdict("inconclusive", sentence, verdict.estimates)
        corrected[i] = replace(old, p_holm=p, verdict=verdict)
    return corrected


def error_shares(primary: Sequence[bool]) -> list[float]:
    """Returns the part of the error rate of each comparison: half of it is for the primary ones."""
    count = sum(primary)
    sizes = {True: 2 * count, False: 2 * (len(primary) - count)}
    if not all(sizes.values()):
        return [1 / max(1, len(primary))] * len(primary)
    return [1 / sizes[index] for index in primary]


def ratio_interval(
    a: Numbers,
    b: Numbers,
    *,
    paired: bool = False,
    confidence: float = 0.95,
    prior: Array = dependence.ASSUMED,
    is_anytime: bool = False,
) -> tuple[float, Band]:
    """Returns the ratio b / a with the interval that decides a comparison, and nothing else of it.

    As `paired` or `independent` give it, none that is too wide for its data. Raises Refused as they
    do, and where a ratio has no meaning.
    """
    values_a, values_b = clean(a), clean(b)
    scale = scale_of(values_a, values_b)
    if scale is None:
        raise Refused("The median of A is zero or infinite, so that a ratio to it has no meaning.")
    series = (scale.b - scale.a,) if paired else (scale.a, scale.b)
    _, widening = allow_for_dependence(("",) * len(series), series, prior)
    interval = interval_of(widening, paired=paired, is_anytime=is_anytime)
    at = interval(scale.a, scale.b)(confidence).without_wide
    return scale.ratio(at.value), scale.band(at.low, at.high)


def _draft(
    a: Array,
    b: Array,
    scale: Scale | None,
    interval: Callable[[Array, Array], Interval],
    u: float,
    better: Better,
    margin: float,
    unit: str,
    confidence: float,
    names: tuple[str, str],
    least: int,
    method: str,
) -> TwoSampleComparison:
    """Returns what all designs have: ratio, equivalence interval, verdict, difference, effect size.

    u: Mann and Whitney's statistic. method: of the interval.
    """
    margin_bounds(margin)  # a margin without meaning is refused before anything is computed
    a12 = u / (a.size * b.size)
    empty = TwoSampleComparison(
        False,
        better,
        margin,
        int(a.size),
        int(b.size),
        Verdict("inconclusive", ""),
        ratio=None,
        equivalence=None,
        difference=_difference(a, b, unit, confidence, interval, method),
        cliffs_delta=2 * a12 - 1,
        a12=a12,
    )
    if scale is None:
        sentence = (
            f"No verdict: {names[0]}'s median is zero or infinite, so a relative margin has no "
            "meaning; look at the difference."
        )
        return replace(empty, verdict=Verdict("inconclusive", sentence))
    shift = interval(scale.a, scale.b)

    def band_at(confidence: float) -> Band:
        at = shift(confidence)
        return scale.band(at.low, at.high)

    level = equivalence_confidence(confidence)
    at, equivalence = shift(confidence), band_at(level)
    value, band = scale.ratio(at.value), band_at(confidence)
    word: Word = judge(band, equivalence, better, margin)
    if at.too_wide and word == "inconclusive":
        at, band, equivalence = at.without_wide, NO_BAND, NO_BAND
    n, method = min(empty.n_a, empty.n_b), f"{method} {scale.words}"
    ratio = band_estimate(value, band, confidence, n, method)
    inside = band_estimate(value, equivalence, level, n, method)
    sentence = say(word, value, band, equivalence, margin, confidence, names)
    lacking = _lacking(empty, at, least, confidence)
    if lacking:
        word, sentence = "inconclusive", lacking
    warnings = [TOO_WIDE] if at.too_wide else []
    if band.low == band.high:
        warnings.append(FLAT)
    middle = float(np.median(a)) if np.all(np.isfinite(a)) and np.all(np.isfinite(b)) else 0.0
    return replace(
        empty,
        verdict=verdict_of(word, sentence, ratio, inside),
        ratio=ratio,
        equivalence=inside,
        ratio_of_medians=float(np.median(b)) / middle if middle else None,
        p_ratio=_p_of(lambda p: band_at(1 - p).excludes_one, 1 - confidence, 0.8),
        tost_p=_p_of(lambda p: band_at(1 - 2 * p).within(margin), 1 - confidence, 0.4),
        warnings=tuple(warnings),
    )


def _with_warnings(
    result: TwoSampleComparison, texts: Sequence[str], means: Estimate | None
) -> TwoSampleComparison:
    """Returns the comparison with the warnings on dependence, and on means that disagree.

    Ranks and means draw opposite conclusions from outliers, or from skewed values.
    """
    warnings = [*texts, *result.warnings]
    bands = [Band(e.low, e.high) for e in (result.ratio, means) if e and e.low and e.high]
    if len(bands) == 2 and bands[0].excludes_one != bands[1].excludes_one:
        ranks, of_means = (f"[{change(band.low)}, {change(band.high)}]" for band in bands)
        warnings.append(
            f"Ranks ({ranks}) and means ({of_means}) disagree on whether there is a difference: a "
            "few repetitions are far off; look at the values before relying on means."
        )
    return replace(result, warnings=tuple(warnings))


def _lacking(sizes: TwoSampleComparison, at: ranks.Shift, least: int, confidence: float) -> str:
    """The sentence for too few repetitions to conclude anything; empty when there are enough."""
    head = f"No verdict: {sizes.n_a} and {sizes.n_b} repetitions"
    if min(sizes.n_a, sizes.n_b) < least:
        return (
            f"{head} cannot show a difference at {percent(confidence)}; measure at least {least} "
            "a side."
        )
    if at.low is None:
        return f"{head} are {NOT_ENOUGH} at {percent(confidence)}; measure more of them."
    return ""


def _difference(
    a: Array,
    b: Array,
    unit: str,
    confidence: float,
    interval: Callable[[Array, Array], Interval],
    method: str,
) -> Estimate | None:
    """Difference b - a in the metric's unit; None when it is infinite."""
    values = np.concatenate([a, b])
    reach = float(np.max(np.abs(values[np.isfinite(values)]), initial=1.0)) * CENSORED
    x, y = (np.where(np.isinf(v), reach, v) for v in (a, b))
    at = interval(x, y)(confidence)
    at = at if at.excludes_zero else at.without_wide
    if abs(at.value) > reach / 4:
        return None
    low, high = (None if s is None or abs(s) > reach / 4 else s for s in (at.low, at.high))
    note = "" if low is not None and high is not None else "No interval on the side left out."
    note = TOO_WIDE if at.too_wide else note
    n = int(min(a.size, b.size))
    return Estimate(at.value, low, high, confidence, n, unit, f"{method} b - a", note)


def _p_of(holds: Callable[[float], bool], alpha: float, largest: float) -> float:
    """The smallest p for which a statement holds that holds for all larger ones too, to 5 %.

    It lies on the side of alpha on which the statement lies. 1 if it does not hold at `largest`.
    """
    if not holds(largest):
        return 1.0
    low, high = (SMALLEST_P, alpha) if holds(alpha) else (alpha, largest)
    if holds(low):
        return low
    while high > 1.05 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
