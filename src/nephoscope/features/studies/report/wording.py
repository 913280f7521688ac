"""Text of published and measured figures, each with interval and n."""

from __future__ import annotations

from nephoscope.core import units
from nephoscope.core.model import Estimate
from nephoscope.features.studies.comparison.emulation import RowOutcome, ShareOutcome
from nephoscope.features.studies.comparison.side_by_side import ComparisonOutcome
from nephoscope.features.studies.comparison.tables import TableCell

_DIGITS = 4


def interval_text(value: float, low: float | None, high: float | None, unit: str) -> str:
    """Returns '1.022 times [1.018, 1.027]'; '?' where an interval has no bound on a side."""
    text = f"{units.format_number(value, _DIGITS)} {unit}".rstrip()
    if low is None and high is None:
        return f"{text}, no interval"
    ends = ("?" if end is None else units.format_number(end, _DIGITS) for end in (low, high))
    return f"{text} [{', '.join(ends)}]"


def estimate_text(estimate: Estimate | None, unit: str, absent: str = "") -> str:
    """Returns value with interval and n: '75.1 % of a CPU [74.9, 75.3], n 9'; or why none is."""
    if estimate is None:
        return f"none: {absent}" if absent else "none"
    text = interval_text(estimate.value, estimate.low, estimate.high, unit)
    return f"{text}, n {estimate.n}"


def published_text(outcome: ComparisonOutcome) -> str:
    """Returns the published figure: '1.022 times [1.018, 1.027], n 100 (Table 3.2)'."""
    figure = outcome.published
    if figure.direction:
        return f"{figure.direction}, without a number ({figure.source})"
    if figure.value is None:
        return f"{' > '.join(figure.order)} ({figure.source})"
    value = interval_text(figure.value, figure.low, figure.high, outcome.unit)
    return f"{value}, {_n(figure.n)} ({figure.source})"


def measured_text(outcome: ComparisonOutcome) -> str:
    """Returns the measured figure with interval and n; of an order, each step."""
    if outcome.steps:
        order = outcome.published.order
        return "; ".join(
            f"{first} over {second} {estimate_text(step, 'times')}"
            for first, second, step in zip(order, order[1:], outcome.steps, strict=False)
        )
    return estimate_text(outcome.measured, outcome.unit)


def published_cell(cell: TableCell) -> str:
    """Returns '1,716 ms [1,715, 1,718], n 100'; of several sets their mean, and each of them."""
    published = cell.published
    interval = interval_text(published.value, published.low, published.high, cell.unit)
    text = f"{interval}, {_n(published.n)}"
    if len(cell.numbers) == 1:
        return text
    return f"{text} sets ({', '.join(number.text for number in cell.numbers)})"


def measured_cell(cell: TableCell) -> str:
    """Returns the measured value with interval and n, or why there is none."""
    sets = " sets" if cell.measured is not None and len(cell.numbers) > 1 else ""
    return f"{estimate_text(cell.measured, cell.unit, cell.absent)}{sets}"


def published_share(share: ShareOutcome) -> str:
    """Returns '75.6 emulated, 75.7 EC2'; the study gives them without interval or n."""
    return ", ".join(f"{x.number.value:g} {x.label}" for x in share.published) or "–"


def verdict_text(row: RowOutcome) -> str:
    """Returns the inferred scheduler, and whether it is the one that was set; '' if not asked."""
    if not row.expected:
        return ""
    wrong = "" if row.verdict == row.expected else f", expected {row.expected}"
    return f"Inferred scheduler: {row.verdict}{wrong}. {row.sentence}"


def _n(n: int | None) -> str:
    return "n not given" if n is None else f"n {n}"
