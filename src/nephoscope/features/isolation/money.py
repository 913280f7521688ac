"""What a slowdown costs: the part of an hour's price for which the victim gets nothing."""

from __future__ import annotations

from dataclasses import replace

from nephoscope.core.model import Estimate
from nephoscope.features.isolation.records import Cell
from nephoscope.report import wording

CURRENCY = "USD"

TEXT = "Lost: part of what is paid for the victim that its slowdown takes away (1 - 1 / factor)"
WITHOUT_PRICE = f"{TEXT}; --price shows it in money per hour"
WITH_PRICE = f"{TEXT}, in money per hour"


def lost_of(factor: Estimate, price_per_h: float | None) -> Estimate:
    """Returns the lost part of an hour's price, or the lost money per hour where it has a price."""
    price = 1.0 if price_per_h is None else price_per_h

    def lost(slowdown: float) -> float:
        return price * (1 - 1 / slowdown)

    return replace(
        factor,
        value=lost(factor.value),
        low=None if factor.low is None else lost(factor.low),
        high=None if factor.high is None else lost(factor.high),
        unit="ratio" if price_per_h is None else f"{CURRENCY}/h",
        method=f"price x (1 - 1 / factor); factor: {factor.method}",
    )


def lost_text(cell: Cell) -> str:
    """Returns the loss with its interval: '33.1 % [30.2, 35.0]', '0.0318 USD/h [0.029, 0.034]'."""
    if cell.lost is None:
        return "–"
    if cell.lost.unit == "ratio":
        return f"{wording.value_text(cell.lost)} {wording.interval_text(cell.lost)}"
    return f"{wording.amount(cell.lost.value, cell.lost.unit)} {wording.amount_interval(cell.lost)}"
