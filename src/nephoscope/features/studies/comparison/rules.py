"""Decides when a figure of a study counts as reproduced: two figures in, mark and reason out.

published: a value, its band the published interval (or nothing). measured: an interval.

in number, with a margin m (relative):
  whole interval inside published ± m (or inside its interval)      -> reproduced in number
  interval contains published and is no wider than that band        -> reproduced in number
  interval beyond the band, same side of `neutral`                  -> reproduced in kind
  interval beyond the band otherwise                                -> contradicted
  else                                                              -> not comparable: too wide
in kind, with a neutral value:
  whole interval on the published side of neutral                     -> reproduced in kind
  whole interval on the other side                                  -> contradicted
  whole interval within `negligible` of neutral, published beyond   -> contradicted
  else                                                              -> not comparable: too wide
bound, of a number that is given as "at least" or "at most"
  whole interval on the stated side -> reproduced in kind; on the other side -> contradicted
fitted, or set by the plan: in number, but the mark is the ground; the reason says whether it holds
order: each name over the next one, as a ratio to 1
  every step's interval above 1 -> reproduced in kind; one wholly below 1 -> contradicted
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass
from nephoscope.features.studies.comparison.published import ReferenceFigure


class Mark(StrEnum):
    """Result of a comparison."""

    IN_NUMBER = "reproduced in number"
    IN_KIND = "reproduced in kind"
    CONTRADICTED = "contradicted"
    FITTED = "fitted"
    SET = "set by the plan"
    NOT_COMPARABLE = "not comparable"


REPRODUCED = frozenset({Mark.IN_NUMBER, Mark.IN_KIND})
"""Marks that count as reproductions."""

Judgement = tuple[Mark, str]
"""The mark, and the reason as the rest of a sentence."""


@dataclass(frozen=True, slots=True)
class Range:
    """An interval that exists on both sides."""

    low: float
    high: float

    def within(self, outer: Range) -> bool:
        """Returns whether it lies wholly inside."""
        return outer.low <= self.low and self.high <= outer.high

    def beyond(self, bounds: Range) -> bool:
        """Returns whether both have no common point."""
        return self.high < bounds.low or bounds.high < self.low

    def holds(self, value: float) -> bool:
        """Returns whether the value lies in it."""
        return self.low <= value <= self.high

    def side(self, value: float) -> int:
        """Returns 1 above the value, -1 below it, 0 when it holds it."""
        return 1 if self.low > value else -1 if self.high < value else 0


def range_of(estimate: Estimate | ReferenceFigure | None) -> Range | None:
    """Returns the interval of an estimate; None where one of its sides does not exist."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return None
    return Range(estimate.low, estimate.high)


def lies_within(estimate: Estimate | None, bounds: Range) -> bool | None:
    """Returns whether the whole interval lies inside the bounds; None where that is open."""
    interval = range_of(estimate)
    if interval is None or not (interval.within(bounds) or interval.beyond(bounds)):
        return None
    return interval.within(bounds)


def in_number(
    published: float, band: Range | None, measured: Range, *, margin: float, neutral: float | None
) -> Judgement:
    """Returns whether both are the same number, within the margin (relative to `published`)."""
    room = abs(published) * margin
    low = min(published - room, band.low) if band else published - room
    high = max(published + room, band.high) if band else published + room
    same = Range(low, high)
    bounds = f"{_number(low)} to {_number(high)}"
    if measured.within(same):
        return Mark.IN_NUMBER, f"the whole measured interval lies within {bounds}"
    if measured.holds(published) and measured.high - measured.low <= same.high - same.low:
        return (
            Mark.IN_NUMBER,
            "the measured interval contains the published figure and is as narrow as the margin",
        )
    if measured.beyond(same):
        if neutral is not None and measured.side(neutral) == _sign(published - neutral) != 0:
            return Mark.IN_KIND, f"the direction is the same, the size is not: beyond {bounds}"
        return Mark.CONTRADICTED, f"the whole measured interval lies beyond {bounds}"
    return (
        Mark.NOT_COMPARABLE,
        f"the measured interval is too wide: it lies across the edge of {bounds}",
    )


def in_kind(
    published: float, measured: Range, *, neutral: float, negligible: float | None
) -> Judgement:
    """Returns whether both have the same direction; negligible: a distance from neutral."""
    direction = _sign(published - neutral)
    if direction == 0:
        return Mark.NOT_COMPARABLE, "the study has no direction"
    if measured.side(neutral) == direction:
        return Mark.IN_KIND, f"the effect has the same direction, and excludes {_number(neutral)}"
    if measured.side(neutral) == -direction:
        return Mark.CONTRADICTED, "the effect has the other direction"
    if negligible is not None and abs(published - neutral) > negligible:
        no_effect = Range(neutral - negligible, neutral + negligible)
        if measured.within(no_effect):
            bounds = f"{_number(no_effect.low)} to {_number(no_effect.high)}"
            return Mark.CONTRADICTED, f"the measurement excludes an effect beyond {bounds}"
    return Mark.NOT_COMPARABLE, f"the measured interval is too wide: it contains {_number(neutral)}"


def by_bound(bound: float, side: str, measured: Range) -> Judgement:
    """Returns whether a bound holds; side: `at least` or `at most`."""
    stated = 1 if side == "at least" else -1
    if (measured.low >= bound) if stated > 0 else (measured.high <= bound):
        return Mark.IN_KIND, f"the whole measured interval is {side} {_number(bound)}"
    if measured.side(bound) == -stated:
        relation = "below" if stated > 0 else "above"
        return Mark.CONTRADICTED, (
            f"the whole measured interval lies {relation} the bound of {side} {_number(bound)}"
        )
    return Mark.NOT_COMPARABLE, f"the measured interval is too wide: it contains {_number(bound)}"


def circular(mark: Mark, judged: Judgement) -> Judgement:
    """Returns the judgement of a figure that was fitted, or that the plan sets; mark: which."""
    verdict, reason = judged
    if verdict is Mark.NOT_COMPARABLE:
        return judged
    cause = (
        "parameters were chosen so that this figure comes out"
        if mark is Mark.FITTED
        else "the plan sets this figure"
    )
    return mark, f"{cause}, so that agreement is no evidence: {reason}"


def in_order(names: Sequence[str], steps: Sequence[Range]) -> Judgement:
    """Returns whether each name is above the next one; steps: intervals of the ratios."""
    pairs = list(zip(names, names[1:], steps, strict=False))
    for upper, lower, step in pairs:
        if step.side(1) < 0:
            return Mark.CONTRADICTED, f"{upper} is below {lower}"
    for upper, lower, step in pairs:
        if step.side(1) == 0:
            reason = f"the measured interval is too wide: {upper} and {lower} cannot be told apart"
            return Mark.NOT_COMPARABLE, reason
    return Mark.IN_KIND, "each is above the next, and no interval holds 1"


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _number(value: float) -> str:
    return f"{value:.4g}"
