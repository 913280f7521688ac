"""Everything that has no section of its own, drawn by the shape of its metrics."""

from __future__ import annotations

from nephoscope.core.model import RunResult
from nephoscope.report import charts, selection, wording
from nephoscope.report.blocks import Block, Section, Sentence

MAX_DRAWN = 40
"""Benchmarks that are drawn; nobody reads more charts, and the tables have the rest."""


def build(result: RunResult, drawn_elsewhere: frozenset[str]) -> Section | None:
    """Distributions for histograms, curves over sizes, dots with intervals for the rest."""
    names = [metric.benchmark for metric in result.metrics]
    names += [key[0] for key in result.histograms]
    blocks: list[Block] = []
    chosen = [name for name in dict.fromkeys(names) if name not in drawn_elsewhere]
    if len(chosen) > MAX_DRAWN:
        drawn = f"Charts of {MAX_DRAWN} of {len(chosen)} benchmarks"
        blocks.append(Sentence(f"{drawn}; the tables above list the results of all of them."))
    for benchmark in chosen[:MAX_DRAWN]:
        blocks += _benchmark(result, benchmark)
    return Section("other", "Other benchmarks", tuple(blocks)) if blocks else None


def _benchmark(result: RunResult, benchmark: str) -> list[Block]:
    keys = selection.histogram_keys(result, benchmark)
    drawn_by_histogram = {(key[1], key[2]) for key in keys}
    scalars = [
        metric
        for metric in selection.of_benchmark(result, benchmark)
        if (_stem(metric.metric), metric.target) not in drawn_by_histogram
    ]
    headline = [metric for metric in scalars if metric.headline]
    blocks: list[Block] = list(charts.by_unit(headline or scalars, benchmark))
    for number, name in enumerate(dict.fromkeys(key[1] for key in keys)):
        blocks += charts.cdf(
            result,
            [key for key in keys if key[1] == name],
            id=f"cdf-{wording.slug(benchmark)}-{number}",
            title=f"{wording.clean(benchmark)}: distribution of {wording.metric_name(name)}",
            axis=wording.metric_name(name),
            unit=_unit_of(result, benchmark, name),
        )
    return blocks


def _stem(metric: str) -> str:
    """The histogram's metric behind a percentile: 'latency_p99_ns' is of 'latency_ns'."""
    head, mark, tail = metric.rpartition("_p")
    digits, _, unit = tail.partition("_")
    if not mark or not digits.isdigit():
        return metric
    return f"{head}_{unit}" if unit else head


def _unit_of(result: RunResult, benchmark: str, name: str) -> str:
    """The unit of a histogram: that of its percentiles, else what its name ends in."""
    for metric in selection.of_benchmark(result, benchmark):
        if _stem(metric.metric) == name:
            return metric.estimate.unit
    return "ns" if name.endswith("_ns") else "bytes" if name.endswith("_bytes") else "none"
