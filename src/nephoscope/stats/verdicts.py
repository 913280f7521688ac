"""From the interval of a ratio to a word, against a margin that the user set."""

from __future__ import annotations

import math

from nephoscope.core.model import Better, Estimate, Verdict, VerdictWord
from nephoscope.core.records import dataclass
from nephoscope.stats.statistics.values import Refused, percent

Word = VerdictWord


@dataclass(frozen=True, slots=True)
class Band:
    """An interval of the ratio b / a; infinite or 0 where it is unbounded on that side."""

    low: float
    high: float

    @property
    def excludes_one(self) -> bool:
        """Returns whether the sides differ at this confidence."""
        return self.low > 1 or self.high < 1

    def within(self, margin: float) -> bool:
        """Returns whether the sides are practically the same at this confidence."""
        lower, upper = margin_bounds(margin)
        return self.low >= lower and self.high <= upper


NO_BAND = Band(0.0, math.inf)


def margin_bounds(margin: float) -> tuple[float, float]:
    """Ratios that are practically the same: [1 / (1 + m), 1 + m].

    Symmetric under swapping the sides, so that "B worse than A" is "A better than B"; for 3 % the
    lower bound is -2.91 %. Raises Refused outside 0 … 1.
    """
    if not 0 <= margin < 1:
        raise Refused(f"A margin of {margin} has no meaning; give a ratio such as 0.03 for 3 %.")
    return 1 / (1 + margin), 1 + margin


def equivalence_confidence(confidence: float) -> float:
    """Returns the level of the interval that decides equivalence: 90 % for 95 %."""
    return 2 * confidence - 1


def judge(band: Band, equivalence: Band, better: Better, margin: float) -> Word:
    """The word for B against A.

    better, worse: the whole interval lies beyond the margin. equivalent: the interval of the
    equivalence test (90 % for 95 %: two one-sided tests) lies inside it; different but negligible:
    that, and the sides differ. inconclusive: all else, and beyond the margin of a metric of which
    neither direction is good.
    """
    lower, upper = margin_bounds(margin)
    if band.low > upper or band.high < lower:
        if better is Better.NONE:
            return "inconclusive"
        good = (band.low > upper) == (better is Better.HIGHER)
        return "better" if good else "worse"
    if equivalence.within(margin):
        return "different but negligible" if band.excludes_one else "equivalent"
    return "inconclusive"


def change(ratio: float) -> str:
    """A ratio as a person reads it: 1.06 is '+6 %', 0.4 is '×0.4', 2.5 is '×2.5'."""
    if not math.isfinite(ratio):
        return "unbounded"
    if 0.5 < ratio < 2:
        return f"{100 * (ratio - 1):+.3g} %"
    return f"×{ratio:.3g}"


def say(
    word: Word,
    value: float,
    band: Band,
    equivalence: Band,
    margin: float,
    confidence: float,
    names: tuple[str, str] = ("A", "B"),
) -> str:
    """The verdict in one sentence, with the interval that decided it and its level."""
    a, b = names
    span = f"{change(value)} {_interval(band, confidence)}"
    inside = _interval(equivalence, equivalence_confidence(confidence))
    limit = f"±{percent(margin)}"
    if word in {"better", "worse"}:
        return f"{b} is {word} than {a}: {span}, all of it beyond the margin of {limit}."
    if word == "equivalent":
        return (
            f"{b} and {a} are equivalent: {change(value)} {inside}, inside the margin of {limit}."
        )
    if word == "different but negligible":
        return f"{b} differs from {a} by {span}, but by less than the margin of {limit}: {inside}."
    lower, upper = margin_bounds(margin)
    if band.low > upper or band.high < lower:
        return f"{b} differs from {a} by {span}; of this metric neither direction is better."
    if band.excludes_one:
        return f"{b} differs from {a} by {span}; whether by more than {limit} stays open."
    return f"Undecided: {b} against {a} is {span}; more repetitions would narrow it."


def verdict_of(
    word: Word, sentence: str, ratio: Estimate | None, equivalence: Estimate | None
) -> Verdict:
    """Returns a verdict with the estimate whose interval decided it."""
    decided = equivalence if word == "equivalent" else ratio
    return Verdict(word, sentence, (decided,) if decided else ())


def _interval(band: Band, confidence: float) -> str:
    return f"[{change(band.low)}, {change(band.high)}] at {percent(confidence)}"
