"""An estimate in words: its value and its interval with as many digits as the interval shows."""

# ruff: noqa: D102  core/model.py describes the fields.
from __future__ import annotations

from typing import Protocol

from nephoscope.core import units
from nephoscope.core.naming import clean


class StatedEstimate(Protocol):
    """What the text needs of an estimate (see core/model.py)."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    @property
    def n(self) -> int: ...
    @property
    def unit(self) -> str: ...
    @property
    def note(self) -> str: ...
    @property
    def censored(self) -> bool: ...


def digits_for(estimate: StatedEstimate) -> int:
    """Significant digits that show the interval's width, from 3 to 6."""
    return units.interval_digits(estimate.value, estimate.low, estimate.high)


def value_text(estimate: StatedEstimate) -> str:
    """The value with its unit: '11.2 GB/s'; of a lower bound '≥ 1.20 s'."""
    if _is_large_count(estimate):
        return _count(estimate.value, estimate)
    least = "≥ " if estimate.censored else ""
    return least + units.format_value(estimate.value, estimate.unit, digits_for(estimate))


def interval_text(estimate: StatedEstimate) -> str:
    """The interval in the value's unit, '[11.0, 11.4]', or that there is none."""
    if estimate.low is None and estimate.high is None:
        return f"none (n = {estimate.n})"  # the note says why, among the warnings
    divisor, _ = units.scale_of(estimate.unit, estimate.value)
    digits = digits_for(estimate)
    if estimate.censored:
        bound = estimate.value if estimate.low is None else estimate.low
        return f"[{units.format_number(bound / divisor, digits)}, ∞)"
    sides = [
        "?"
        if side is None
        else _count(side, estimate)
        if _is_large_count(estimate)
        else units.format_number(side / divisor, digits)
        for side in (estimate.low, estimate.high)
    ]
    missing = f" ({clean(estimate.note)})" if "?" in sides and estimate.note else ""
    return f"[{sides[0]}, {sides[1]}]{missing}"


def _is_large_count(estimate: StatedEstimate) -> bool:
    return estimate.unit == "count" and abs(estimate.value) >= 10_000


def _count(value: float, estimate: StatedEstimate) -> str:
    """'65,000,000': digits beyond what the interval tells are noughts; an exact count is whole."""
    if estimate.low is not None and estimate.high is not None and estimate.low < estimate.high:
        value = float(f"{value:.{digits_for(estimate) - 1}e}")
    return f"{value:,.0f}"


def estimate_text(estimate: StatedEstimate) -> str:
    """The whole estimate in a sentence: '11.2 GB/s [11.0, 11.4] (n = 12)', '71 % (1 trial)'."""
    interval = interval_text(estimate)
    if not interval.startswith("["):
        return f"{value_text(estimate)} ({unbounded_text(estimate.n)})"
    return f"{value_text(estimate)} {interval} (n = {estimate.n})"


def unbounded_text(n: int) -> str:
    """What stands in a sentence instead of an interval: '1 trial', 'no interval, n = 3'."""
    return "1 trial" if n == 1 else f"no interval, n = {n}"


def estimate_cells(estimate: StatedEstimate) -> tuple[str, str, str]:
    """Value, interval and n of an estimate, for a table's row."""
    interval = interval_text(estimate)
    interval = interval if interval.startswith("[") else "none"  # n stands beside it
    return value_text(estimate), interval, str(estimate.n)
