"""Derives what follows from several lines together: memory levels, scaling, broken laws."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

from nephoscope import catalog
from nephoscope.catalog import instruments
from nephoscope.catalog.meaning import ClosedLoop
from nephoscope.core.model import Better, Estimate, LineKey, MetricResult, factors_key
from nephoscope.core.naming import line_name
from nephoscope.core.units import format_number
from nephoscope.features.machine import knees as ladder
from nephoscope.results.machine_figures import MachineFigures, MemoryLevels, ThreadScaling
from nephoscope.results.run_data import RunData
from nephoscope.stats import facts
from nephoscope.stats.statistics import estimates
from nephoscope.stats.statistics.values import Refused

LADDERS = (instruments.MEM_CACHE, instruments.MEM_LATENCY)


def rates_of_all_threads() -> frozenset[tuple[str, str]]:
    """Returns benchmark and metric of each rate of all threads together.

    A rate per thread has no ideal of N times one.
    """
    return frozenset(
        (spec.id, metric.id)
        for spec in catalog.load().benchmarks.values()
        for metric in spec.metrics
        if metric.scales_with_threads
    )


_LEAST_LEVELS = 4  # below it a plateau cannot be told from a slope

Sweeps = dict[LineKey, list[tuple[float, MetricResult]]]


LAW_TOLERANCE = 0.10


def analyse(data: RunData) -> MachineFigures:
    """Returns all figures of this file; a part without data is empty."""
    return MachineFigures(
        tuple(_memory_levels(data.metrics, data.fingerprints)),
        tuple(_scaling(data.metrics, data.confidence)),
        _laws(data.metrics, data.histograms),
    )


def sweeps(
    metrics: Iterable[MetricResult], benchmarks: Container[str], is_swept: Callable[[str], bool]
) -> Sweeps:
    """Lines of these benchmarks along their swept factor, ascending; the other factors fixed."""
    out: Sweeps = {}
    for line in metrics:
        swept = [name for name in line.factors if is_swept(name)]
        if line.benchmark not in benchmarks or len(swept) != 1 or line.better is Better.NONE:
            continue
        rest = {name: level for name, level in line.factors.items() if name != swept[0]}
        key = (line.benchmark, line.metric, line.target, factors_key(rest))
        out.setdefault(key, []).append((float(line.factors[swept[0]]), line))
    for points in out.values():
        points.sort(key=lambda point: point[0])
    return out


def _memory_levels(
    metrics: Sequence[MetricResult], fingerprints: Mapping[str, Any]
) -> Iterable[MemoryLevels]:
    for key, points in sweeps(metrics, LADDERS, lambda name: name.endswith("_bytes")).items():
        if len(points) < _LEAST_LEVELS:
            continue
        try:
            knees = ladder.knees(
                [x for x, _ in points],
                [line.estimate.value for _, line in points],
                higher_is_better=points[0][1].better is Better.HIGHER,
                cache_sizes=facts.cache_sizes(fingerprints.get(key[2])),
            )
        except Refused:
            continue
        yield MemoryLevels(*key[:3], json.loads(key[3]), tuple(knees))


def _scaling(metrics: Sequence[MetricResult], confidence: float) -> Iterable[ThreadScaling]:
    rates = rates_of_all_threads()
    scaled = {benchmark for benchmark, _ in rates}
    for key, points in sweeps(metrics, scaled, lambda name: name == "threads").items():
        one_thread = next((line for threads, line in points if threads == 1), None)
        if one_thread is None or key[:2] not in rates or len(points) < 2:
            continue
        single = one_thread.by_round
        efficiency: dict[int, Estimate] = {}
        for threads, line in points:
            many = line.by_round
            shares = [
                many[r] / (threads * single[r])
                for r in sorted(single.keys() & many.keys())
                if single[r] > 0
            ]
            if threads > 1 and shares:
                efficiency[int(threads)] = estimates.median(
                    shares, unit="ratio", confidence=confidence
                )
        if efficiency:
            yield ThreadScaling(*key[:3], json.loads(key[3]), efficiency)


def _laws(
    metrics: Sequence[MetricResult], merged: Mapping[LineKey, tuple[Sequence[float], Sequence[int]]]
) -> tuple[str, ...]:
    """Little's law of every closed loop: number in flight = rate x mean latency."""
    rates = {
        (line.benchmark, line.metric, line.target, factors_key(line.factors)): line
        for line in metrics
    }
    broken: list[str] = []
    for key, (values, numbers) in merged.items():
        for loop in _closed_loops(key):
            line = rates.get((key[0], loop.rate, key[2], key[3]))
            if line is None or not sum(numbers) or (loop.depth and loop.depth not in line.factors):
                continue
            mean_ns = sum(v * n for v, n in zip(values, numbers, strict=True)) / sum(numbers)
            in_flight = float(line.factors[loop.depth]) if loop.depth else 1.0
            sentence = little(in_flight, line.estimate.value, mean_ns / 1e9)
            broken += [f"{line_name(key[0], loop.rate, line.factors)}: {sentence}"] * bool(sentence)
    return tuple(broken)


def _closed_loops(key: LineKey) -> list[ClosedLoop]:
    """Returns the closed loops whose latency a line is."""
    spec = catalog.spec_of(key[0])
    return [loop for loop in spec.closed_loops if loop.latency == key[1]] if spec else []


def little(concurrency: float, throughput_per_s: float, response_s: float) -> str | None:
    """Returns a sentence where Little's law of a closed loop, N = X R, does not hold; else None.

    Source: Lazowska et al., Quantitative System Performance, 1984.
    """
    inside = throughput_per_s * response_s
    scale = max(abs(inside), abs(concurrency))
    if not scale or abs(inside - concurrency) / scale <= LAW_TOLERANCE:
        return None
    return (
        f"Little's law is broken: {format_number(throughput_per_s)} /s times "
        f"{format_number(response_s)} s is {format_number(inside)} in the system, not "
        f"{format_number(concurrency)}."
    )
