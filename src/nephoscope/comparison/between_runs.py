"""Two runs that were not interleaved: what moved between them beside the thing compared?

The unit of replication is the run (launch, hour), not the repetition: sequential blocks declare
identical systems different more often than not when the machine drifts. Sources: Abedi & Brecht,
ICPE 2017; one-way random effects: Searle, Casella & McCulloch 1992.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from nephoscope.analysis.compare import MARGIN, Comparison, independent
from nephoscope.analysis.shift_scales import band_estimate, scale_of
from nephoscope.analysis.statistics.means import t_quantile
from nephoscope.analysis.statistics.values import Array, Numbers, clean, finite, percent
from nephoscope.analysis.verdicts import Band, Word, equivalence_confidence, judge, say, verdict_of
from nephoscope.model import Better, Estimate

LEAST_RUNS = 3
BLOCKS = 4
LEAST_PER_BLOCK = 2

NOT_INTERLEAVED = (
    "The two runs were not interleaved, so any change over time counts as a "
    "difference; measure both in one plan to exclude it."
)


def separate_runs(
    a: Numbers,
    b: Numbers,
    a_history: Numbers = (),
    b_history: Numbers = (),
    *,
    better: Better,
    margin: float = MARGIN,
    unit: str = "none",
    confidence: float = 0.95,
    names: tuple[str, str] = ("A", "B"),
) -> Comparison:
    """Compare two runs that were made one after the other.

    a, b: one value a repetition, in order of time. a_history, b_history: the medians of other runs
    of the same machine and setting as A's, and as B's.
    With three runs or more in all, the variance of run medians about their machine's mean (pooled)
    gives the interval, by Student t with (runs - machines) degrees of freedom. Without, the drift
    seen between four blocks of each run stands for it: a lower bound, because what moves slower
    than a run is not in it; then only a difference wholly beyond the margin gets a verdict, and
    equivalence is never claimed. The interval is never narrower than `independent` gives.
    """
    plain = independent(
        a, b, better=better, margin=margin, unit=unit, confidence=confidence, names=names
    )
    one, other, history = clean(a), clean(b), clean_history(a_history, b_history)
    scale = scale_of(one, other)
    if scale is None or plain.ratio is None or plain.ratio.low is None:
        return replace(plain, warnings=(NOT_INTERLEAVED, *plain.warnings))
    known = 2 + history[0].size + history[1].size >= LEAST_RUNS
    if known:
        spread, df, words = _from_history(one, other, history)
    else:
        spread, df, words = _from_blocks(scale.a, scale.b)
    if df < 1:
        return _no_verdict(plain, names)

    value = plain.ratio.value
    centre = scale.to_shift(value) if value > 0 else -math.inf
    half = t_quantile(df, confidence) * spread
    level = equivalence_confidence(confidence)
    narrow = t_quantile(df, level) * spread
    band = _union(plain.ratio, scale.band(centre - half, centre + half))
    equivalence = _union(plain.equivalence, scale.band(centre - narrow, centre + narrow))
    word = judge(band, equivalence, better, margin)
    sentence = say(word, value, band, equivalence, margin, confidence, better, names)
    if not known:
        word, sentence = _of_two_runs_alone(word, sentence, names)
    method = f"Hodges-Lehmann shift {scale.words}; {words}"
    ratio = band_estimate(value, band, confidence, plain.ratio.n, method)
    inside = band_estimate(value, equivalence, level, plain.ratio.n, method)
    return replace(
        plain,
        ratio=ratio,
        equivalence=inside,
        p_between_runs=_p(centre, spread, df),
        verdict=verdict_of(word, sentence, ratio, inside),
        warnings=(NOT_INTERLEAVED, _told(known, words), *plain.warnings),
    )


def clean_history(a_history: Numbers, b_history: Numbers) -> tuple[Array, Array]:
    """The medians of other runs of either machine; timeouts are refused."""
    return (
        finite(a_history, least=0, statistic="variance between runs"),
        finite(b_history, least=0, statistic="variance between runs"),
    )


def _told(known: bool, words: str) -> str:
    if known:
        return f"The interval includes the variance between runs, {words}."
    return (
        "The store has no other runs of these machines: the variance between runs is "
        "estimated from the drift within the two runs, which is a lower bound."
    )


def _of_two_runs_alone(word: Word, sentence: str, names: tuple[str, str]) -> tuple[Word, str]:
    """What a lower bound of the variance between runs allows to say."""
    if word in {"better", "worse"}:
        return word, (
            f"{sentence} The runs were not interleaved, so part of the difference may be due to "
            "time, not to the machine."
        )
    if word == "inconclusive":
        return word, sentence
    return "inconclusive", (
        f"Undecided: {names[1]} looks like {names[0]}, but two runs do not show the "
        "variance between runs; interleave them in one plan, or repeat each run."
    )


def _no_verdict(plain: Comparison, names: tuple[str, str]) -> Comparison:
    sentence = (
        f"No verdict: {names[0]} and {names[1]} were measured in two short runs, which do "
        "not show the variance between runs; interleave them in one plan, or repeat each "
        "run."
    )
    return replace(
        plain,
        verdict=verdict_of("inconclusive", sentence, plain.ratio, None),
        warnings=(NOT_INTERLEAVED, *plain.warnings),
    )


def _from_history(a: Array, b: Array, history: tuple[Array, Array]) -> tuple[float, int, str]:
    """Standard error of the log ratio of two run medians, its degrees of freedom, and words."""
    groups = []
    for own, others in zip((a, b), history, strict=True):
        medians = np.append(others, np.median(own))
        if np.all(medians > 0):
            groups.append(np.log(medians))
        else:
            groups.append(medians / (abs(float(np.median(a))) or 1.0))
    df = sum(group.size - 1 for group in groups)
    squares = sum(float(np.sum((group - group.mean()) ** 2)) for group in groups)
    spread = math.sqrt(2 * squares / df)
    runs = sum(group.size for group in groups)
    return spread, df, f"estimated from {runs} runs (run to run {percent(spread / math.sqrt(2))})"


def _from_blocks(a: Array, b: Array) -> tuple[float, int, str]:
    """As `_from_history`, from the medians of four successive blocks of each run.

    A run is taken to be worth no more than one of its blocks: a drift slow enough to move one
    block against the next moves one run against the next at least as far.
    """
    if min(a.size, b.size) < BLOCKS * LEAST_PER_BLOCK:
        return 0.0, 0, ""
    variance = 0.0
    for values in (a, b):
        medians = np.array([np.median(block) for block in np.array_split(values, BLOCKS)])
        variance += float(np.var(medians, ddof=1))
    return math.sqrt(variance), 2 * (BLOCKS - 1), f"drift between {BLOCKS} blocks of each run"


def _union(estimate: Estimate | None, band: Band) -> Band:
    """The wider of both on either side."""
    if estimate is None or estimate.low is None:
        return Band(0.0, math.inf)
    high = math.inf if estimate.high is None else estimate.high
    return Band(min(estimate.low, band.low), max(high, band.high))


def _p(shift: float, spread: float, df: int) -> float:
    """Two-sided p of no difference beyond that from run to run."""
    from scipy.special import stdtr

    if spread == 0:
        return 1.0 if shift == 0 else 0.0
    return float(2 * stdtr(df, -abs(shift) / spread))
