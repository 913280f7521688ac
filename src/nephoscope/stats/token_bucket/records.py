"""What a series of rates shows of a token bucket."""

from __future__ import annotations

from typing import Literal

from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass

CreditWord = Literal["on credit", "steady", "varies", "cannot be told"]


@dataclass(frozen=True, slots=True)
class BurstCredit:
    """A verdict on a series of rates, and the token bucket where there is one.

    verdict: on credit, where the rate falls from a burst to a baseline and does not rise again
    under load; steady; varies, where it changes in another way; cannot be told. reason: one
    sentence. burst, baseline: rates. knee: seconds on the clock of the series at which the credit
    was used up for the first time; drain: seconds of load until then. credit: what passed beyond
    the baseline and the refill until then, in the unit of the rates times seconds. refill: credit
    that a second without load gives. drops: how often the credit was used up. points: rates that
    were used. span_s: from the first to the last. notes: on what the values assume.
    """

    verdict: CreditWord
    reason: str
    points: int
    span_s: float
    burst: Estimate | None = None
    baseline: Estimate | None = None
    knee: Estimate | None = None
    drain: Estimate | None = None
    credit: Estimate | None = None
    refill: Estimate | None = None
    drops: int = 0
    notes: tuple[str, ...] = ()

    @property
    def is_on_credit(self) -> bool:
        """Returns whether a token bucket was recognised."""
        return self.verdict == "on credit"
