"""When a figure of a study counts as reproduced. Pure: two figures in, a mark and a reason out.

theirs: the published value, its band the published interval (or nothing). ours: value, low, high.

in number, with a margin m (relative):
  whole interval inside theirs ± m (or inside their own interval)  -> reproduced in number
  interval contains theirs and is no wider than that band           -> reproduced in number
  interval beyond the band, same side of `neutral`                  -> reproduced in kind
  interval beyond the band otherwise                                -> contradicted
  else                                                              -> not comparable: too wide
in kind, with a neutral value:
  whole interval on their side of neutral                           -> reproduced in kind
  whole interval on the other side                                  -> contradicted
  whole interval within `negligible` of neutral, theirs beyond      -> contradicted
  else                                                              -> not comparable: too wide
order: each name over the next one, as a ratio to 1
  every step's interval above 1 -> reproduced in kind; one wholly below 1 -> contradicted
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Mark(StrEnum):
    """What a comparison says."""

    IN_NUMBER = "reproduced in number"
    IN_KIND = "reproduced in kind"
    CONTRADICTED = "contradicted"
    NOT_COMPARABLE = "not comparable"


Judgement = tuple[Mark, str]
"""The mark, and the reason as the rest of a sentence."""


@dataclass(frozen=True, slots=True)
class Range:
    """An interval that exists on both sides."""

    low: float
    high: float

    def within(self, other: Range) -> bool:
        """Wholly inside."""
        return other.low <= self.low and self.high <= other.high

    def beyond(self, other: Range) -> bool:
        """Without a common point."""
        return self.high < other.low or other.high < self.low

    def holds(self, value: float) -> bool:
        """The value lies in it."""
        return self.low <= value <= self.high

    def side(self, value: float) -> int:
        """1 above the value, -1 below it, 0 when it holds it."""
        return 1 if self.low > value else -1 if self.high < value else 0


def in_number(
    theirs: float, band: Range | None, ours: Range, *, margin: float, neutral: float | None
) -> Judgement:
    """Whether ours is the same number, within the margin (relative to theirs)."""
    room = abs(theirs) * margin
    low = min(theirs - room, band.low) if band else theirs - room
    high = max(theirs + room, band.high) if band else theirs + room
    same = Range(low, high)
    told = f"{_number(low)} to {_number(high)}"
    if ours.within(same):
        return Mark.IN_NUMBER, f"our whole interval lies within {told}"
    if ours.holds(theirs) and ours.high - ours.low <= same.high - same.low:
        return Mark.IN_NUMBER, "our interval contains their figure and is as narrow as the margin"
    if ours.beyond(same):
        if neutral is not None and ours.side(neutral) == _sign(theirs - neutral) != 0:
            return Mark.IN_KIND, f"the direction is the same, the size is not: beyond {told}"
        return Mark.CONTRADICTED, f"our whole interval lies beyond {told}"
    return Mark.NOT_COMPARABLE, f"our interval is too wide: it lies across the edge of {told}"


def in_kind(theirs: float, ours: Range, *, neutral: float, negligible: float | None) -> Judgement:
    """Whether ours has the same direction; `negligible` is a distance from neutral."""
    direction = _sign(theirs - neutral)
    if direction == 0:
        return Mark.NOT_COMPARABLE, "they saw no direction"
    if ours.side(neutral) == direction:
        return Mark.IN_KIND, f"the effect has the same direction, and excludes {_number(neutral)}"
    if ours.side(neutral) == -direction:
        return Mark.CONTRADICTED, "the effect has the other direction"
    if negligible is not None and abs(theirs - neutral) > negligible:
        none = Range(neutral - negligible, neutral + negligible)
        if ours.within(none):
            return (
                Mark.CONTRADICTED,
                f"we exclude an effect beyond {_number(none.low)} to {_number(none.high)}",
            )
    return Mark.NOT_COMPARABLE, f"our interval is too wide: it contains {_number(neutral)}"


def in_order(names: Sequence[str], steps: Sequence[Range]) -> Judgement:
    """Whether each name is above the next one; steps: intervals of the ratios."""
    pairs = list(zip(names, names[1:], steps, strict=False))
    for one, other, step in pairs:
        if step.side(1) < 0:
            return Mark.CONTRADICTED, f"{one} is below {other}"
    for one, other, step in pairs:
        if step.side(1) == 0:
            reason = f"our interval is too wide: {one} and {other} cannot be told apart"
            return Mark.NOT_COMPARABLE, reason
    return Mark.IN_KIND, "each is above the next, and no interval holds 1"


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _number(value: float) -> str:
    return f"{value:.4g}"
