"""One server seen by each tool: what the generators of a run report, closed beside open loop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nephoscope import units
from nephoscope.load.result import Load
from nephoscope.model import MetricResult, RunResult, factors_key
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Cell, Column, Heading, Sentence, Table
from nephoscope.results.names import BESIDE

_FAMILIES = (
    ("http.load", "ab", "h2load", "httperf", "siege", "wrk"),
    ("kv.load", "memtier", "redis-benchmark"),
)
"""Generators that load the same kind of server."""

_RATE = "requests_per_s"
_TIMES = ("latency_mean_ns", "latency_p50_ns", "latency_p99_ns", "latency_max_ns")
_CLOSED, _OPEN = "closed", "open"
_LEFT_OUT = {_CLOSED: ("arrivals", "rate_per_s"), _OPEN: ("arrivals",)}
"""Factors that the loop's column repeats, or that have no effect."""


def build(result: RunResult) -> list[Block]:
    """A table for each kind of server that several tools loaded."""
    blocks: list[Block] = []
    for family in _FAMILIES:
        lines = [
            line
            for line in result.metrics
            if line.benchmark in family
            and line.metric == _RATE
            and not BESIDE & line.factors.keys()
        ]
        if len({line.benchmark for line in lines}) > 1:
            blocks += _comparison(result, lines)
    return blocks


def _comparison(result: RunResult, lines: Sequence[MetricResult]) -> list[Block]:
    targets = len({line.target for line in lines})
    rows = []
    for line in sorted(lines, key=lambda line: (_loop(result, line), line.benchmark)):
        loop = _loop(result, line)
        setting = wording.setting_text(line, targets, _LEFT_OUT[loop])
        name = f"{line.benchmark}, {setting}" if setting else line.benchmark
        times = [_time(result, line, metric) for metric in _TIMES]
        rows.append((name, loop, _estimate_text(line), str(line.estimate.n), *times))
    head = (
        *Column.texts("tool", "loop"),
        *Column.numbers("requests/s", "n", "mean", "p50", "p99", "maximum"),
    )
    return [
        Heading("Tools"),
        Sentence(
            "In a closed loop each connection sends its next request after the response, so that "
            "a stall of the server is one slow request for each connection. In an open loop the "
            "requests have intended times, and each that falls into the stall counts from its own. "
            "Compare latencies of one kind of loop."
        ),
        Table(head, tuple(rows)),
    ]


def _estimate_text(line: MetricResult) -> str:
    return f"{wording.value_text(line.estimate)} {wording.interval_text(line.estimate)}"


def _loop(result: RunResult, line: MetricResult) -> str:
    """Whether the requests of a line had intended times."""
    if line.benchmark == "httperf":
        return _OPEN
    load = result.part(Load)
    for counts in load.lines if load else ():
        own = (counts.benchmark, counts.target, factors_key(counts.factors))
        if own == (line.benchmark, line.target, factors_key(line.factors)):
            return _CLOSED if counts.params.get("arrivals", _CLOSED) == _CLOSED else _OPEN
    return _CLOSED


def _time(result: RunResult, line: MetricResult, metric: str) -> Cell:
    """The estimate of a time; mean and maximum of a histogram are those of all requests."""
    levels = factors_key(line.factors)
    for each in result.metrics:
        if (each.benchmark, each.metric, each.target) == (line.benchmark, metric, line.target) and (
            factors_key(each.factors) == levels
        ):
            return _estimate_text(each)
    key = (line.benchmark, "latency_ns", line.target, levels)
    values, counts = result.histograms.get(key, ([], []))
    if not len(values) or metric not in ("latency_mean_ns", "latency_max_ns"):
        return "–"
    value = np.average(values, weights=counts) if metric == "latency_mean_ns" else max(values)
    return units.format_value(float(value), "ns")
