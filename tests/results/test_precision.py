"""The distribution of the widths of a run's headline intervals."""

from __future__ import annotations

from nephoscope.core.model import Estimate, MetricResult, Precision
from nephoscope.results.precision import precision
from stats.judging import line


def metric(half: float | None, value: float = 100.0, headline: bool = True) -> MetricResult:
    low, high = (None, None) if half is None else (value - half, value + half)
    made = line("cpu.pi", "pi_time_ns", value, headline=headline)
    estimate = Estimate(value, low, high, 0.95, 10, "ns", "median")
    return MetricResult(
        made.benchmark,
        made.metric,
        made.target,
        made.factors,
        made.better,
        estimate,
        made.consistency,
        headline,
    )


def test_headline_metrics_are_counted_by_width() -> None:
    halves = (0.0, 1.0, 2.0, 2.1, 5.0, 9.0, 30.0, None)
    found = precision([*map(metric, halves), metric(1.0, headline=False)])
    assert found == Precision(8, 3, 5, 6)


def test_a_value_of_zero_is_precise_only_without_variation() -> None:
    assert precision([metric(0.0, 0.0), metric(1.0, 0.0)]) == Precision(2, 1, 1, 1)


def test_a_run_without_headline_metrics_has_none() -> None:
    assert precision([metric(1.0, headline=False)]) == Precision(0, 0, 0, 0)
