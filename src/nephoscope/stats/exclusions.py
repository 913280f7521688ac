"""Comparisons of lines from which trials were excluded for what they may have measured.

Where a rule excludes more trials of one side than of the other, the rest is a selection: a machine
whose slow trials are left out looks faster than it is. Such a comparison is made twice, without the
excluded trials and with them as they were measured (a trial over its time limit as slower than
all); the interval that covers both results decides. Bounds of this kind: Manski, Partial
Identification of Probability Distributions, 2003, chapter 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from nephoscope.core.model import Better, Estimate, MetricResult, Verdict
from nephoscope.stats.compare import TwoSampleComparison
from nephoscope.stats.statistics.values import Refused, percent
from nephoscope.stats.verdicts import NO_BAND, Band, change, judge, say, verdict_of

SLOWEST_RATE = 1e-100
"""Stands for a rate below everything measured; ratios with it are told as unbounded."""
_UNBOUNDED = 1e50

MAX_NAMED = 3
"""Imbalances that a warning states one by one."""

Pairing = Callable[[MetricResult, MetricResult], TwoSampleComparison]


def imbalance(a: MetricResult, b: MetricResult, names: tuple[str, str]) -> str:
    """Returns how many trials were excluded on each side; empty where both lost the same share."""
    sides = (a, b)
    totals = [side.exclusions.trials or len(side.trial_values) for side in sides]
    causes = [side.exclusions.by_cause for side in sides]
    every = {*causes[0], *causes[1]}
    if all(causes[0].get(c, 0) * totals[1] == causes[1].get(c, 0) * totals[0] for c in every):
        return ""
    larger = 0 if a.exclusions.count * totals[1] > b.exclusions.count * totals[0] else 1
    first, second = (
        (side.exclusions.count, total, name, side.exclusions.by_cause)
        for side, total, name in sorted(
            zip(sides, totals, names, strict=True), key=lambda side: side[0] is not sides[larger]
        )
    )
    verb = "was" if first[0] == 1 else "were"
    trials = "trial" if first[1] == 1 else "trials"
    return (
        f"{first[0]} of {first[1]} {trials} of {first[2]} {verb} excluded ({_causes(first[3])}), "
        f"{second[0]} of {second[1]} of {second[2]}"
        + (f" ({_causes(second[3])})" if second[0] else "")
    )


def warnings(excluded: Iterable[str]) -> list[str]:
    """Returns the sentence that tells what `imbalance` found on several lines; none for none."""
    different = list(dict.fromkeys(text for text in excluded if text))
    if not different:
        return []
    more = f"; and {len(different) - MAX_NAMED} more" if len(different) > MAX_NAMED else ""
    return [
        f"{'; '.join(different[:MAX_NAMED])}{more}. What the rest shows is a selection, so a "
        "verdict is given only where it holds without and with the excluded trials."
    ]


def _causes(by_cause: Mapping[str, int]) -> str:
    if len(by_cause) == 1:
        return next(iter(by_cause))
    return ", ".join(f"{count} {words}" for words, count in by_cause.items())


def as_measured(line: MetricResult) -> MetricResult:
    """Returns a line with its excluded trials among its values.

    A trial over its time limit stands behind all others: an infinite time, the smallest rate.
    """
    own = line.exclusions
    if not own.count:
        return line
    values, rounds = own.values or line.trial_values, own.rounds or line.rounds
    slowest = slowest_value(line.better, positive=min(values, default=1.0) > 0)
    return replace(
        line,
        trial_values=(*values, *(slowest for _ in own.slow_rounds)),
        rounds=(*rounds, *own.slow_rounds),
    )


def slowest_value(better: Better, *, positive: bool) -> float:
    """Returns the value of a trial that was slower than all others: of a rate nearly 0.

    positive: whether the others are above 0, so that their logarithms are compared.
    """
    if better is not Better.HIGHER:
        return math.inf
    return SLOWEST_RATE if positive else 0.0


def bounded(
    comparison: TwoSampleComparison,
    a: MetricResult,
    b: MetricResult,
    again: Pairing,
    names: tuple[str, str],
) -> TwoSampleComparison:
    """Returns a comparison whose verdict holds with and without the excluded trials.

    again: compares two lines as `comparison` was made. Its intervals become those that cover both
    results, and its sentence names the excluded trials.
    """
    excluded = imbalance(a, b, names)
    if not excluded:
        return comparison
    try:
        included = again(as_measured(a), as_measured(b))
    except Refused as reason:
        sentence = f"No verdict: {excluded}. With these trials: {reason}"
        return replace(comparison, verdict=Verdict("inconclusive", sentence))
    ratio = _hull(comparison.ratio, included.ratio)
    equivalence = _hull(comparison.equivalence, included.equivalence)
    bounds = replace(
        comparison,
        ratio=ratio,
        equivalence=equivalence,
        ratio_t=_hull(comparison.ratio_t, included.ratio_t),
        p_ratio=_larger(comparison.p_ratio, included.p_ratio),
        p_between_runs=_larger(comparison.p_between_runs, included.p_between_runs),
        tost_p=_larger(comparison.tost_p, included.tost_p),
    )
    return replace(bounds, verdict=_verdict(bounds, (comparison, included), excluded, names))


def _verdict(
    bounds: TwoSampleComparison,
    results: tuple[TwoSampleComparison, TwoSampleComparison],
    excluded: str,
    names: tuple[str, str],
) -> Verdict:
    without, included = results
    ratio, equivalence = bounds.ratio, bounds.equivalence
    if without.verdict.word == "inconclusive" or ratio is None or equivalence is None:
        sentence = f"{without.verdict.sentence} {excluded}."
        return verdict_of("inconclusive", sentence, ratio, equivalence)
    span, level = _band(ratio), ratio.confidence
    word = judge(span, _band(equivalence), bounds.better, bounds.margin)
    if included.verdict.word == "inconclusive" or word == "inconclusive":
        sentence = (
            f"No verdict: {excluded}, so that the rest is a selection. Without these trials "
            f"{names[1]} against {names[0]} is {_change(without.ratio)}, with them "
            f"{_change(included.ratio)} (at {percent(level)})."
        )
        return verdict_of("inconclusive", sentence, ratio, equivalence)
    sentence = say(word, ratio.value, span, _band(equivalence), bounds.margin, level, names)
    sentence = f"{sentence} {excluded}; this holds without and with these trials."
    return verdict_of(word, sentence, ratio, equivalence)


def _band(estimate: Estimate) -> Band:
    if estimate.low is None:
        return NO_BAND
    high = math.inf if estimate.high is None or estimate.high > _UNBOUNDED else estimate.high
    return Band(estimate.low if estimate.low > 1 / _UNBOUNDED else 0.0, high)


def _change(ratio: Estimate | None) -> str:
    if ratio is None:
        return "unbounded"
    band = _band(ratio)
    return f"{change(ratio.value)} [{change(band.low)}, {change(band.high)}]"


def _hull(a: Estimate | None, b: Estimate | None) -> Estimate | None:
    """Returns the first estimate with the interval that covers both."""
    if a is None or b is None:
        return None
    bands = (_band(a), _band(b))
    low, high = min(band.low for band in bands), max(band.high for band in bands)
    has_interval = a.low is not None and b.low is not None
    return replace(
        a,
        low=low if has_interval else None,
        high=high if has_interval and math.isfinite(high) else None,
        method=f"{a.method}; the interval covers the results without and with excluded trials",
    )


def _larger(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else max(a, b)
