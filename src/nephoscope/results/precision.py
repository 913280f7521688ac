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


def relative_half_width(estimate: Estimate) -> float | None:
    """Returns half the interval over the value; None without an interval or at a value of 0."""
    if estimate.low is not None and estimate.low == estimate.high:
        return 0.0
    return estimate.half_width_ratio
