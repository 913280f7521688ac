"""How precise a run became: how many headline metrics lie within 2, 5 and 10 %."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nephoscope.model import MetricResult

BOUNDS = (0.02, 0.05, 0.10)
"""Relative half-widths by which intervals are counted."""


@dataclass(frozen=True, slots=True)
class Precision:
    """Headline metrics by the relative half-width of their intervals.

    metrics: all headline metrics. within: for each of BOUNDS, how many have an interval at most so
    wide. The rest is wider, or has no interval or no relative width (a value of 0).
    """

    metrics: int
    within: tuple[int, ...]

    @property
    def sentence(self) -> str:
        """Returns the distribution in words: '40 % within ±2 %, 71 % within ±5 %, …'."""
        return ", ".join(
            f"{count / self.metrics:.0%} within ±{bound:.0%}".replace("%", " %")
            for count, bound in zip(self.within, BOUNDS, strict=True)
        )


def precision(metrics: Iterable[MetricResult]) -> Precision:
    """Counts the headline metrics of a run by the width of their intervals."""
    widths = [relative_half_width(metric) for metric in metrics if metric.headline]
    known = [width for width in widths if width is not None]
    within = tuple(sum(width <= bound for width in known) for bound in BOUNDS)
    return Precision(len(widths), within)


def relative_half_width(metric: MetricResult) -> float | None:
    """Returns half the interval over the value; None without an interval or at a value of 0."""
    estimate = metric.estimate
    if estimate.low is not None and estimate.low == estimate.high:
        return 0.0
    return estimate.half_width_ratio
