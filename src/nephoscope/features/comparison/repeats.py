"""Analyses runs of one plan that were repeated with gaps: the run is the unit of replication."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from nephoscope.core.grouping import group_by
from nephoscope.core.model import Better, Estimate, Factors, MetricResult, RunResult, factors_key
from nephoscope.core.records import dataclass
from nephoscope.features.comparison.between_runs import assumption, posterior
from nephoscope.features.comparison.prior import prior_of
from nephoscope.stats.statistics.means import t_quantile
from nephoscope.stats.statistics.values import percent


@dataclass(frozen=True, slots=True)
class RepeatedMetric:
    """A metric over the runs. estimate: geometric mean of the run medians, Student's t interval.

    run_to_run: standard deviation of a run's median, as a ratio, with the assumed one in it.
    medians: one a run, in order of time.
    """

    benchmark: str
    metric: str
    target: str
    factors: Factors
    better: Better
    headline: bool
    estimate: Estimate
    run_to_run: float
    medians: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RepeatedRuns:
    """Repeated runs of one plan, analysed together. runs: their ids, in order of time."""

    runs: tuple[str, ...]
    metrics: tuple[RepeatedMetric, ...]
    warnings: tuple[str, ...]


def analyse_repeats(results: Sequence[RunResult]) -> RepeatedRuns:
    """Returns every metric that all runs have, with the variance between runs in its interval."""
    by_line = group_by(
        (line for result in results for line in result.metrics),
        lambda line: (line.benchmark, line.metric, line.target, factors_key(line.factors)),
    )
    complete = [
        lines
        for lines in by_line.values()
        if len(lines) == len(results)
        and all(line.estimate.value > 0 and not line.estimate.censored for line in lines)
    ]
    warnings = []
    if len(complete) < len(by_line):
        warnings.append(
            f"{len(by_line) - len(complete)} metrics are excluded: a run lacks them, or has a "
            "value that is not above zero or only a lower bound."
        )
    confidence = results[0].run.confidence
    metrics = tuple(_over_runs(lines, confidence) for lines in complete)
    return RepeatedRuns(tuple(result.run.id for result in results), metrics, tuple(warnings))


def _over_runs(lines: Sequence[MetricResult], confidence: float) -> RepeatedMetric:
    first = lines[0]
    medians = np.array([line.estimate.value for line in lines])
    prior = prior_of(first.benchmark, first.metric)
    sd, df, own = posterior([medians], prior)
    words = f"from run to run {percent(sd, 2)}"
    if df > own:
        words += f" with {assumption(prior)}"
    centre = float(np.mean(np.log(medians)))
    half = t_quantile(df, confidence) * sd / math.sqrt(medians.size)
    estimate = Estimate(
        math.exp(centre),
        math.exp(centre - half),
        math.exp(centre + half),
        confidence,
        int(medians.size),
        first.estimate.unit,
        f"geometric mean of run medians, t of logarithms; {words}",
    )
    return RepeatedMetric(
        first.benchmark,
        first.metric,
        first.target,
        first.factors,
        first.better,
        first.headline,
        estimate,
        sd,
        tuple(float(value) for value in medians),
    )
