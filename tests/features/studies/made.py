"""Lines and results of known values, for comparisons without a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nephoscope.core.model import Better, MetricResult, RunResult, RunSummary
from nephoscope.stats.statistics import estimates, variation


def line(
    benchmark: str,
    metric: str,
    values: Sequence[float],
    target: str = "victim",
    **factors: Any,
) -> MetricResult:
    return MetricResult(
        benchmark=benchmark,
        metric=metric,
        target=target,
        factors=factors,
        better=Better.NONE,
        estimate=estimates.median(values, unit="ns"),
        consistency=variation.consistency(values),
        trial_values=tuple(values),
        rounds=tuple(range(1, len(values) + 1)),
    )


def result(*lines: MetricResult) -> RunResult:
    run = RunSummary(id="made", confidence=0.95)
    return RunResult(run=run, metrics=lines, findings=(), invalid=())


def noisy(level: float, spread: float, seed: int, n: int = 20) -> list[float]:
    return list(level * (1 + spread * np.random.default_rng(seed).standard_normal(n)))
