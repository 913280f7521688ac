"""Does the victim come back when the load is gone, and does the quiet itself move?

Quiet after the load is held against quiet before it, paired by round; "recovered" is an equivalence
within the margin, never a failure to see a difference. Source: Schuirmann 1987 (equivalence).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from nephoscope.core.model import Better, Estimate
from nephoscope.core.records import dataclass
from nephoscope.features.isolation import dose_response
from nephoscope.stats import compare
from nephoscope.stats.compare import MARGIN, TwoSampleComparison
from nephoscope.stats.interference import Triple, turned
from nephoscope.stats.statistics.dependence import ASSUMED
from nephoscope.stats.statistics.estimates import mapped
from nephoscope.stats.statistics.values import Array, Numbers, clean

DRIFT_LEAST = 8
"""Baseline trials below which no drift is told: with 7, Kendall's test is too coarse."""


RecoveryWord = Literal["recovered", "not recovered", "better after", "undecided", "not measured"]
DriftWord = Literal["drifts", "steady", "too few"]


@dataclass(frozen=True, slots=True)
class Recovery:
    """Is quiet after the load what quiet was before it?

    word: recovered (equivalent within the margin), not recovered (worse beyond it), better after,
    undecided, or not measured (no quiet on both sides). ratio: quiet after over quiet before,
    turned so that above 1 is worse.
    """

    word: RecoveryWord
    sentence: str
    ratio: Estimate | None
    comparison: TwoSampleComparison | None


def recovery(
    triples: Sequence[Triple],
    *,
    better: Better,
    margin: float = MARGIN,
    confidence: float = 0.95,
    prior: Array = ASSUMED,
) -> Recovery:
    """Quiet after against quiet before, paired by round, with the equivalence verdict."""
    pairs = [(t.before, t.after) for t in triples if t.before is not None and t.after is not None]
    if not pairs:
        text = "Not measured: no round has a baseline trial before and after the loaded one."
        return Recovery("not measured", text, None, None)
    comparison = compare.paired(
        [before for before, _ in pairs],
        [after for _, after in pairs],
        better=better,
        margin=margin,
        unit="ratio",
        confidence=confidence,
        names=("before the load", "after it"),
        prior=prior,
    )
    words: dict[str, RecoveryWord] = {
        "equivalent": "recovered",
        "different but negligible": "recovered",
        "worse": "not recovered",
        "better": "better after",
    }
    word = words.get(comparison.verdict.word, "undecided")
    return Recovery(word, comparison.verdict.sentence, turned(comparison.ratio, better), comparison)


@dataclass(frozen=True, slots=True)
class Drift:
    """Does the quiet itself move over the run?

    ratio: value at the end of the run over that at its beginning, as the slope tells it, turned so
    that above 1 is worse. p: Mann and Kendall's. word: drifts, steady, or too few.
    """

    word: DriftWord
    ratio: Estimate | None
    p: float | None


def drift(at: Numbers, baseline: Numbers, *, better: Better, confidence: float = 0.95) -> Drift:
    """Trend of the baseline trials over time (Theil-Sen on logarithms).

    at: when each was taken, any unit, shape (n,); one value a round, or what rounds have in common
    feigns a trend. Below 8 trials nothing is said. A drift does not
    void factors of trials that have quiet on both sides, since what is straight cancels there.
    """
    times, values = clean(at), clean(baseline)
    if values.size < DRIFT_LEAST or not np.all((values > 0) & np.isfinite(values)):
        return Drift("too few", None, None)
    span = float(times.max() - times.min())
    if span <= 0:
        return Drift("too few", None, None)
    logs = np.log(values) * (-1 if better is Better.HIGHER else 1)
    slope = dose_response.theil_sen((times - times.min()) / span, logs, confidence=confidence)
    method = "end of the run over its beginning; Theil-Sen slope of logarithms"
    ratio = mapped(slope.estimate, math.exp, method=method)
    return Drift("drifts" if slope.p < 1 - confidence else "steady", ratio, slope.p)
