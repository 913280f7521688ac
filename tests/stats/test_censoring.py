from __future__ import annotations

import pytest

from nephoscope.core.model import Better, Consistency, Estimate, MetricResult
from nephoscope.stats import censoring

UNKNOWN = Consistency(None, None, None, None, None, "unknown")


def line(
    value: float, low: float, high: float | None, better: Better = Better.LOWER
) -> MetricResult:
    estimate = Estimate(value, low, high, 0.95, 10, "ns", "p99", censored=high is None)
    return MetricResult(
        "http.load", "latency_p99_ns", "local", {}, better, estimate, UNKNOWN, headline=False
    )


def test_two_values_are_compared_as_ever() -> None:
    assert censoring.compared(line(5e6, 4e6, 6e6), line(9e6, 8e6, 10e6), 0.03) is None


@pytest.mark.parametrize(
    ("a", "b", "better", "word"),
    [
        (line(5e6, 4e6, 6e6), line(990e6, 980e6, None), Better.LOWER, "worse"),
        (line(990e6, 980e6, None), line(5e6, 4e6, 6e6), Better.LOWER, "better"),
        # The bound lies inside the other interval, or within the margin of it.
        (line(2e9, 1e9, 3e9), line(990e6, 980e6, None), Better.LOWER, "inconclusive"),
        (line(5e6, 4e6, 6e6), line(6.1e6, 6.1e6, None), Better.LOWER, "inconclusive"),
        (line(990e6, 980e6, None), line(5e9, 4e9, None), Better.LOWER, "inconclusive"),
    ],
)
def test_a_verdict_needs_bounds_that_lie_apart(
    a: MetricResult, b: MetricResult, better: Better, word: str
) -> None:
    found = censoring.compared(a, b, 0.03)
    assert found is not None
    assert (found.verdict.word, found.ratio, found.p) == (word, None, None)


def test_the_sentence_has_both_bounds() -> None:
    found = censoring.compared(line(5e6, 4e6, 6e6), line(990e6, 980e6, None), 0.03)
    assert found is not None
    assert found.verdict.sentence == (
        "B is worse than A: A is at most 6.00 ms, B at least 980 ms (requests without an answer "
        "reach it)."
    )
