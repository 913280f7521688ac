"""How precise a run became: how many headline metrics lie within 2, 5 and 10 %."""

from __future__ import annotations

from collections.abc import Iterable

from nephoscope.core.model import Estimate, MetricResult, Precision


def precision(metrics: Iterable[MetricResult]) -> Precision:
    """Counts the headline metrics of a run by the relative half-width of their intervals."""
    widths = [relative_half_width(metric.estimate) for metric in metrics if metric.headline]
    known = [width for width in widths if width is not None]
    within = (sum(width <= bound for width in known) for bound in (0.02, 0.05, 0.10))
    return Precision(len(widths), *within)


def precision_sentence(reached: Precision) -> str:
    """Returns the distribution in words: '40 % within ±2 %, 71 % within ±5 %, …'."""
    counts = {
        2: reached.within_2_percent,
        5: reached.within_5_percent,
        10: reached.within_10_percent,
    }
    return ", ".join(
        f"{100 * count / reached.metrics:.0f} % within ±{bound} %"
        for bound, count in counts.items()
    )


def relative_half_width(estimate: Estimate) -> float | None:
    """Returns half the interval over the value; None without an interval or at a value of 0."""
    if estimate.low is not None and estimate.low == estimate.high:
        return 0.0
    return estimate.half_width_ratio
