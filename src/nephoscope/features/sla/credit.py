"""Credits of an agreement, exact to the cent: tier, cap, minimum, deadline of the claim."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from fractions import Fraction

from nephoscope.core.errors import UsageError
from nephoscope.core.records import dataclass
from nephoscope.features.sla.terms import Agreement, Objective, nanoseconds

_CENT = Decimal("0.01")
_LARGEST = Decimal(10) ** 12


@dataclass(frozen=True, slots=True)
class Credit:
    """Credit of a period, amounts as decimal text in `currency`.

    owed: what the events prove; slots of which nothing is known count as good. possible: if all of
    those were bad. Both null without a bill; the shares of the bill are null where the source does
    not state a schedule. claim_by: last moment of a claim. business_loss: downtime at the stated
    loss per hour.
    """

    currency: str
    bill: str | None
    owed_share: float | None
    possible_share: float | None
    owed: str | None
    possible: str | None
    claim_by: str | None
    business_loss: str | None
    note: str = ""


def amount_of(text: str, what: str) -> Decimal:
    """Returns an amount of money from text; UsageError for anything else than 0 or more."""
    try:
        amount = Decimal(text.strip())
    except ArithmeticError:
        amount = Decimal("NaN")
    if not amount.is_finite() or not 0 <= amount <= _LARGEST:
        raise UsageError(
            f"{what}: '{text[:40]}' is no amount of money.", "Use a number such as 1234.56."
        )
    return amount


def share_of_tiers(objective: Objective, share: Fraction) -> Decimal:
    """Returns the credit, as a share of the bill, of a share of good slots or events."""
    reached = [tier for tier in objective.credits if share < Fraction(tier.below)]
    return min(reached, key=lambda tier: tier.below).credit if reached else Decimal(0)


def share_of_downtime(objective: Objective, downtime_s: Fraction) -> Decimal:
    """Returns the credit for each full interval of downtime, at most the whole bill."""
    rule = objective.credit_per_downtime
    assert rule is not None
    return min(Decimal(1), rule.credit * (downtime_s // Fraction(nanoseconds(rule.every), 10**9)))


def capped(agreement: Agreement, shares: Iterable[Decimal]) -> Decimal:
    """Returns the sum of the credits of several objectives, at most the cap."""
    return min(agreement.cap, sum(shares, Decimal(0)))


def amount(agreement: Agreement, bill: Decimal, share: Decimal) -> Decimal:
    """Returns the credit in money: rounded to the cent, never above the cap.

    A credit that does not exceed the agreement's minimum is not paid.
    """
    rounded = (bill * share).quantize(_CENT, ROUND_HALF_UP)
    limit = (bill * agreement.cap).quantize(_CENT, ROUND_DOWN)
    value = min(rounded, limit)
    minimum = agreement.minimum_credit
    return Decimal("0.00") if minimum is not None and value <= minimum else value


def money(value: Decimal) -> str:
    """Returns an amount with two decimals."""
    return f"{value.quantize(_CENT, ROUND_HALF_UP):f}"
