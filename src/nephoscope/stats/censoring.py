"""Compares lines of which one is a lower bound, because requests without an answer reach it."""

from __future__ import annotations

from nephoscope.core import units
from nephoscope.core.model import Better, Estimate, MetricResult, Verdict
from nephoscope.stats.compare import TwoSampleComparison
from nephoscope.stats.verdicts import Word, margin_bounds


def compared(
    a: MetricResult, b: MetricResult, margin: float, names: tuple[str, str] = ("A", "B")
) -> TwoSampleComparison | None:
    """Returns the comparison of two lines where one of them is censored; None where neither is.

    A verdict needs bounds that lie apart by more than the margin: the lower bound of one side above
    the upper bound of the other. There is no ratio, because one of its sides has no value. Two
    lower bounds say nothing about each other.
    """
    if not (a.estimate.censored or b.estimate.censored):
        return None
    word, sentence = _verdict(a, b, margin, names)
    return TwoSampleComparison(
        paired=False,
        better=a.better,
        margin=margin,
        n_a=a.estimate.n,
        n_b=b.estimate.n,
        verdict=Verdict(word, sentence),
        ratio=None,
        equivalence=None,
        difference=None,
    )


def _verdict(
    a: MetricResult, b: MetricResult, margin: float, names: tuple[str, str]
) -> tuple[Word, str]:
    sides = f"{names[0]} is {_known(a.estimate)}, {names[1]} {_known(b.estimate)}"
    why = "requests without an answer reach it"
    if a.estimate.censored and b.estimate.censored:
        return "inconclusive", f"Undecided: {sides}; two lower bounds cannot be compared ({why})."
    bound, value = (a, b) if a.estimate.censored else (b, a)
    low, high = bound.estimate.low, value.estimate.high
    if low is None or high is None or low <= high * margin_bounds(margin)[1]:
        return "inconclusive", f"Undecided: {sides}; the bounds overlap ({why})."
    if a.better is Better.NONE:
        return "inconclusive", f"{sides} ({why}); of this metric neither direction is better."
    word: Word = "better" if (bound is b) == (a.better is Better.HIGHER) else "worse"
    return word, f"{names[1]} is {word} than {names[0]}: {sides} ({why})."


def _known(estimate: Estimate) -> str:
    if estimate.censored:
        bound = estimate.value if estimate.low is None else estimate.low
        return f"at least {units.format_value(bound, estimate.unit)}"
    if estimate.high is None:
        return units.format_value(estimate.value, estimate.unit)
    return f"at most {units.format_value(estimate.high, estimate.unit)}"
