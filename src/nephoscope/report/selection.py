"""Picks what a section shows out of a result: curves over a factor, distributions, scalars."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from nephoscope.core.model import MetricResult, RunResult, factors_key
from nephoscope.core.naming import as_number
from nephoscope.core.records import dataclass
from nephoscope.report import wording
from nephoscope.results.machine_figures import MachineFigures

_LADDER_LEVELS = 6  # fewer are settings of their own

HistogramKey = tuple[str, str, str, str]
MAX_CURVES = 8
"""Curves that a person can tell apart in one figure."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """One metric over the levels of one numeric factor, the other factors fixed; x ascends."""

    benchmark: str
    metric: str
    target: str
    fixed: Mapping[str, Any]
    x: tuple[float, ...]
    points: tuple[MetricResult, ...]

    @property
    def key(self) -> HistogramKey:
        """The key by which MachineFigures knows this curve."""
        return (self.benchmark, self.metric, self.target, factors_key(self.fixed))


def is_built_in(result: RunResult) -> bool:
    """Returns whether the plan is that of `survey` or `bench`, whose question nobody asked."""
    return result.run.plan.startswith(("survey-", "bench-"))


def target_names(result: RunResult) -> list[str]:
    """Targets that the result speaks of, in order of first appearance."""
    names = [metric.target for metric in result.metrics]
    names += [trial.target for trial in result.invalid]
    names += list(result.fingerprints)
    return list(dict.fromkeys(names))


def of_benchmark(result: RunResult, *benchmarks: str) -> list[MetricResult]:
    """Metrics of these benchmarks, in the result's order."""
    return [metric for metric in result.metrics if metric.benchmark in benchmarks]


def numeric_level(metric: MetricResult, factor: str) -> float | None:
    """The level of a numeric factor; None where it is absent or no number."""
    return as_number(metric.factors.get(factor))


def sweeps(metrics: Iterable[MetricResult], factor: str, *, at_least: int = 2) -> list[Sweep]:
    """Metrics that were measured at `at_least` levels of the factor, grouped by all else."""
    groups: dict[tuple[str, str, str, str], list[tuple[float, MetricResult]]] = {}
    for metric in metrics:
        x = numeric_level(metric, factor)
        if x is not None:
            rest = {name: level for name, level in metric.factors.items() if name != factor}
            key = (metric.benchmark, metric.metric, metric.target, factors_key(rest))
            groups.setdefault(key, []).append((x, metric))
    out = []
    for (benchmark, name, target, rest_key), points in groups.items():
        points.sort(key=lambda point: point[0])
        if len({x for x, _ in points}) >= at_least:
            xs, ys = zip(*points, strict=True)
            out.append(Sweep(benchmark, name, target, json.loads(rest_key), xs, ys))
    return out


def ladder_factor(metrics: Iterable[MetricResult]) -> str | None:
    """The factor of bytes with the most levels: the vector length of a cache ladder."""
    levels: dict[str, set[float]] = {}
    for metric in metrics:
        for name in metric.factors:
            value = numeric_level(metric, name)
            if name.endswith("_bytes") and value is not None:
                levels.setdefault(name, set()).add(value)
    best = max(levels, key=lambda name: len(levels[name]), default=None)
    return best if best is not None and len(levels[best]) >= 3 else None


def natural_order(metrics: Iterable[MetricResult]) -> list[MetricResult]:
    """Grouped by benchmark and metric as they first appear, numeric levels ascending."""
    listed = list(metrics)
    benchmarks = {name: at for at, name in enumerate(dict.fromkeys(m.benchmark for m in listed))}
    names = {name: at for at, name in enumerate(dict.fromkeys(m.metric for m in listed))}

    def place(metric: MetricResult) -> tuple[Any, ...]:
        words = [
            (k, _by_number(v)) for k, v in sorted(metric.factors.items()) if isinstance(v, str)
        ]
        levels = [
            (k, x) for k in sorted(metric.factors) if (x := numeric_level(metric, k)) is not None
        ]
        return (
            wording.group_rank(metric.benchmark),
            benchmarks[metric.benchmark],
            metric.target,
            names[metric.metric],
            words,
            levels,
        )

    return sorted(listed, key=place)


def _by_number(level: str) -> tuple[float, str]:
    """Hours and other whole numbers in their order, before words in theirs."""
    return (float(level) if level.isdecimal() else math.inf, level)


def ladder_steps(result: RunResult, metrics: Sequence[MetricResult]) -> dict[int, str]:
    """Of metrics swept over many lengths: id() of those that stand for a level -> its name.

    One for each level between the knees: the length in the middle of its step. Without knees
    the shortest and the longest. The id() of every other point of a ladder has the name ''.
    """
    out: dict[int, str] = {}
    known = result.part(MachineFigures) or MachineFigures()
    for benchmark in dict.fromkeys(metric.benchmark for metric in metrics):
        own = [metric for metric in metrics if metric.benchmark == benchmark]
        factor = ladder_factor(own)
        for sweep in sweeps(own, factor, at_least=_LADDER_LEVELS) if factor else ():
            out |= {id(point): "" for point in sweep.points}
            start = 0
            for knee in known.knees(sweep.key):
                last = knee.last_length_bytes
                inside = [i for i, x in enumerate(sweep.x) if i >= start and x <= (last or x)]
                if inside:
                    out[id(sweep.points[inside[len(inside) // 2]])] = wording.clean(knee.level)
                    start = inside[-1] + 1
            if start == 0:
                out |= {id(sweep.points[0]): "shortest", id(sweep.points[-1]): "longest"}
            elif start < len(sweep.x):
                out[id(sweep.points[-1])] = "longest"
    return out


def histogram_keys(
    result: RunResult, benchmark: str, wanted: Callable[[str], bool] = lambda _: True
) -> list[HistogramKey]:
    """Keys of the non-empty histograms of a benchmark whose metric is wanted."""
    return [
        key
        for key, (values, counts) in result.histograms.items()
        if key[0] == benchmark and wanted(key[1]) and values and sum(counts) > 0
    ]


def key_factors(key: HistogramKey) -> dict[str, Any]:
    """The factors of a histogram's or a series' key."""
    factors = json.loads(key[3]) if key[3] else {}
    return factors if isinstance(factors, dict) else {}


def merge_histograms(
    histograms: Iterable[tuple[Sequence[float], Sequence[int]]],
) -> tuple[list[float], list[int]]:
    """Histograms of one kind added up, values ascending."""
    totals: dict[float, int] = {}
    for values, counts in histograms:
        for value, count in zip(values, counts, strict=True):
            totals[value] = totals.get(value, 0) + count
    values = sorted(totals)
    return values, [totals[value] for value in values]


def cumulative(values: Sequence[float], counts: Sequence[int]) -> list[tuple[float, float, int]]:
    """(value, share of all that is at most this value, count up to here), values ascending."""
    pairs = sorted(zip(values, counts, strict=True))
    total = sum(counts)
    up_to = accumulate(count for _, count in pairs)
    return [(value, seen / total, seen) for (value, _), seen in zip(pairs, up_to, strict=True)]


def thin_steps(
    steps: Sequence[tuple[float, float, int]], limit: int
) -> list[tuple[float, float, int]]:
    """At most about `limit` steps of a CDF: where it climbs, and along its tail.

    Steps are kept as they are, none is moved: half of them evenly by share, half evenly by place
    (histogram buckets grow with the value, so that places follow its logarithm).
    """
    if len(steps) <= limit:
        return list(steps)
    last = len(steps) - 1
    half = max(2, limit // 2)
    keep = {round(index * last / (half - 1)) for index in range(half)}
    for index in range(1, half):
        keep.add(min(last, bisect_left(steps, index / half, key=lambda step: step[1])))
    return [steps[index] for index in sorted(keep)]


def nearest_rank(steps: Sequence[tuple[float, float, int]], q: float) -> float:
    """The smallest value whose cumulative share reaches q."""
    return next((value for value, share, _ in steps if share >= q - 1e-12), steps[-1][0])
