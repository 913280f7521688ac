"""Burst credits in a stored run: in the series of its loads, and in its trials one after another.

A load reports its rate in every interval. Where a run has none, as a survey, the trials of its CPU
benchmarks are points of one series: each relative to the highest rates of its own metric, because
what uses up the credit of a machine slows all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np

from nephoscope.catalog.instruments import LOAD_CPU, LOAD_DISK, LOAD_NET
from nephoscope.core.model import Better, MetricResult
from nephoscope.core.naming import line_name
from nephoscope.features.credits.records import BurstCredits, CreditSeries
from nephoscope.results.run_data import RunData
from nephoscope.stats.statistics.values import Array, Refused
from nephoscope.stats.token_bucket.estimation import burst_credit
from nephoscope.store import query

SERIES = {
    LOAD_CPU: "interval_work_per_s",
    LOAD_DISK: "interval_bytes_per_s",
    LOAD_NET: "interval_bytes_per_s",
}
"""Load -> the metric of its rate; `net.throughput` has the same analysis in its own section."""
_LEAST_POINTS = 30
_LEAST_SPAN_S = 5.0
_LEAST_TRIALS = 24
"""Trials of all CPU benchmarks together from which on they are one series."""
_LEAST_OF_METRIC = 4
_CHART_POINTS = 600
POOLED = "CPU benchmarks"
_CPU = ("cpu.", "app.")


def analyse(data: RunData) -> BurstCredits | None:
    """Returns the series of a run's loads, and of its CPU trials where they are on credit."""
    recognised = [*_of_loads(data), *_of_trials(data)]
    return BurstCredits(tuple(recognised)) if recognised else None


def series_of(
    source: str,
    metric: str,
    unit: str,
    at_s: Sequence[float] | Array,
    rates: Sequence[float] | Array,
    busy: Sequence[float] | None = None,
    confidence: float = 0.95,
) -> CreditSeries:
    """Returns a series with its analysis; its clock begins with it. Raises Refused for what is no
    series."""
    times, values = np.asarray(at_s, dtype=float), np.asarray(rates, dtype=float)
    times = times - times[0] if times.size else times
    analysis = burst_credit(times, values, busy, unit=unit, confidence=confidence)
    group = -(-values.size // _CHART_POINTS)
    return CreditSeries(
        source,
        metric,
        unit,
        analysis,
        at_s=tuple(float(each) for each in times[::group]),
        rates=tuple(
            float(np.median(values[at : at + group])) for at in range(0, values.size, group)
        ),
    )


def _of_loads(data: RunData) -> Iterator[CreditSeries]:
    points: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    starts = {record.key.name: record.started_at for record in data.records}
    wanted = set(SERIES.items())
    if not {benchmark for benchmark, _ in wanted} & data.benchmarks:
        return
    for point in query.series(data.run, lambda benchmark, metric: (benchmark, metric) in wanted):
        start = starts.get(point.trial)
        if start is not None:
            at_s = start + point.at_ns / 1e9
            points[point.target, point.benchmark, point.factors].append((at_s, point.value))
    for (target, benchmark, factors), values in points.items():
        metric = SERIES[benchmark]
        if len(values) < _LEAST_POINTS:
            continue
        ordered = np.array(sorted(values))
        times, first = np.unique(ordered[:, 0] - ordered[0, 0], return_index=True)
        if times[-1] < _LEAST_SPAN_S:
            continue
        unit = next(each.unit for each in data.run.spec(benchmark).metrics if each.id == metric)
        with suppress(Refused):
            name = line_name(benchmark, metric, {}) if factors in ("", "{}") else metric
            yield series_of(
                target, name, unit, times, ordered[first, 1], confidence=data.confidence
            )


def _of_trials(data: RunData) -> Iterator[CreditSeries]:
    """Yields the series of a target's CPU trials, where it shows a token bucket."""
    starts: dict[tuple[str, str, int], float] = {}
    for each in data.records:
        starts.setdefault((each.benchmark, each.key.target, each.key.round), each.started_at)
    by_target: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for line in data.metrics:
        if _is_cpu_rate(line):
            by_target[line.target] += _relative(line, starts)
    for target, values in by_target.items():
        if len(values) < _LEAST_TRIALS:
            continue
        ordered = np.array(sorted(values))
        at_s, first = np.unique(ordered[:, 0] - ordered[0, 0], return_index=True)
        with suppress(Refused):
            recognised = series_of(
                target, POOLED, "ratio", at_s, ordered[first, 1], confidence=data.confidence
            )
            if recognised.analysis.is_on_credit:
                yield recognised


def _is_cpu_rate(line: MetricResult) -> bool:
    return (
        line.headline
        and line.better is Better.HIGHER
        and not line.simulated
        and line.benchmark.startswith(_CPU)
        and len(line.trial_values) >= _LEAST_OF_METRIC
        and len(line.rounds) == len(line.trial_values)
    )


def _relative(
    line: MetricResult, starts: Mapping[tuple[str, str, int], float]
) -> Iterator[tuple[float, float]]:
    high = float(np.percentile(line.trial_values, 75))
    for number, value in zip(line.rounds, line.trial_values, strict=True):
        at_s = starts.get((line.benchmark, line.target, number))
        if at_s is not None and high > 0:
            yield at_s, value / high
