"""One server seen by each tool: what the generators of a run report, closed beside open loop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nephoscope import catalog
from nephoscope.catalog.meaning import Domain, RequestLoop
from nephoscope.core.model import Estimate, MetricResult, RunResult, factors_key
from nephoscope.features.load.result import LoadAnalysis, LoadCounts
from nephoscope.report import figures, palette, wording
from nephoscope.report.blocks import Block, Chart, Heading, Sentence, Table
from nephoscope.report.columns import number, spread, table, text
from nephoscope.results.names import AUXILIARY_FACTORS

_SERVERS = (Domain.WEB, Domain.KEY_VALUE)
"""Kinds of servers that several generators load with requests of one kind."""

_RATE = "requests_per_s"
_TIMES = ("latency_mean_ns", "latency_p50_ns", "latency_p99_ns", "latency_max_ns")
_NAMES = ("mean", "p50", "p99", "maximum")
_CLOSED, _OPEN = "closed", "open"
_LEFT_OUT = {_CLOSED: ("arrivals", "rate_per_s"), _OPEN: ("arrivals",)}
"""Factors that the loop's column repeats, or that have no effect."""


def build(result: RunResult) -> list[Block]:
    """A table for each kind of server that several tools loaded."""
    blocks: list[Block] = []
    for kind in _SERVERS:
        family = _generators_for(kind)
        lines = [
            line
            for line in result.metrics
            if line.benchmark in family
            and line.metric == _RATE
            and not AUXILIARY_FACTORS & line.factors.keys()
        ]
        if len({line.benchmark for line in lines}) > 1:
            blocks += _comparison(result, lines)
    return blocks


def _generators_for(kind: Domain) -> tuple[str, ...]:
    """Returns the benchmarks that send requests to servers of one kind."""
    return catalog.ids_where(
        lambda spec: spec.domain is kind and spec.request_loop is not RequestLoop.NONE
    )


def _comparison(result: RunResult, lines: Sequence[MetricResult]) -> list[Block]:
    targets = len({line.target for line in lines})
    rows: list[tuple[str, str, Estimate, list[Estimate | None]]] = []
    for line in sorted(lines, key=lambda line: (_loop(result, line), line.benchmark)):
        loop = _loop(result, line)
        setting = wording.setting_text(line, targets, _LEFT_OUT[loop])
        name = f"{line.benchmark}, {setting}" if setting else line.benchmark
        times = [_time(result, line, metric) for metric in _TIMES]
        rows.append((name, loop, line.estimate, times))
    listing = table(
        rows,
        text("tool", lambda row: row[0]),
        text("loop", lambda row: row[1]),
        number("requests/s", lambda row: _estimate_text(row[2])),
        number("n", lambda row: row[2].n),
        *spread(_NAMES, lambda row: list(map(_estimate_text, row[3]))),
    )
    return [
        Heading("Tools"),
        Sentence(
            "In a closed loop each connection sends its next request after the response, so that "
            "a stall of the server is one slow request for each connection. In an open loop the "
            "requests have intended times, and each that falls into the stall counts from its own. "
            "Compare latencies of one kind of loop."
        ),
        _chart([(f"{name} ({loop})", times) for name, loop, _, times in rows], listing),
        listing,
    ]


def _chart(times: Sequence[tuple[str, list[Estimate | None]]], table: Table) -> Chart:
    """Mean, percentiles and maximum of each tool below each other."""
    data = []
    for place, name in enumerate(_NAMES):
        colour, _, symbol = palette.style(place)
        own = [(row, all_[place]) for row, (_, all_) in enumerate(times)]
        known = [(row, estimate) for row, estimate in own if estimate is not None]
        data.append(
            figures.trace(
                name,
                [estimate.value for _, estimate in known],
                [row for row, _ in known],
                [f"{times[row][0]}, {name}: {_estimate_text(estimate)}" for row, estimate in known],
                marker={"color": colour, "symbol": symbol, "size": 9},
                error_x=figures.interval_bars([estimate for _, estimate in known])
                | {"color": colour},
            )
        )
    labels = [name for name, _ in times]
    layout = figures.layout(
        figures.axis_of(
            figures.Axis("latency", "ns", log=True),
            [estimate.value for _, own in times for estimate in own if estimate is not None],
        ),
        figures.named_ticks(labels, range=[len(labels) - 0.5, -0.5]),
        height=110 + 34 * len(labels),
    )
    id = f"load-tools-{wording.slug(labels[0])}"
    figure = {"data": data, "layout": layout}
    return Chart(id, "Latency by tool", figure, table, repeats=True)


def _estimate_text(estimate: Estimate | None) -> str:
    """The value with its interval, if it has one at all; '–' without a value."""
    if estimate is None:
        return "–"
    value = wording.value_text(estimate)
    return f"{value} {wording.interval_text(estimate)}" if estimate.method else value


def _loop(result: RunResult, line: MetricResult) -> str:
    """Returns whether the requests of a line had intended times."""
    spec = catalog.spec_of(line.benchmark)
    if spec is not None and spec.request_loop is not RequestLoop.ARRIVALS:
        return _OPEN if spec.request_loop is RequestLoop.OPEN else _CLOSED
    counts = _counts(result, line)
    arrivals = counts.params.get("arrivals", _CLOSED) if counts else _CLOSED
    return _CLOSED if arrivals == _CLOSED else _OPEN


def _counts(result: RunResult, line: MetricResult) -> LoadCounts | None:
    """The counts of the generator's setting that a line is of."""
    load = result.part(LoadAnalysis)
    wanted = (line.benchmark, line.target, factors_key(line.factors))
    for counts in load.lines if load else ():
        if wanted == (counts.benchmark, counts.target, factors_key(counts.factors)):
            return counts
    return None


def _time(result: RunResult, line: MetricResult, metric: str) -> Estimate | None:
    """The estimate of a time; mean and maximum of a histogram are those of all requests."""
    levels = factors_key(line.factors)
    for each in result.metrics:
        if (each.benchmark, each.metric, each.target) == (line.benchmark, metric, line.target) and (
            factors_key(each.factors) == levels
        ):
            return each.estimate
    key = (line.benchmark, "latency_ns", line.target, levels)
    values, counts = result.histograms.get(key, ([], []))
    if not len(values) or metric not in ("latency_mean_ns", "latency_max_ns"):
        return None
    value = np.average(values, weights=counts) if metric == "latency_mean_ns" else max(values)
    n, counts_of = line.estimate.n, _counts(result, line)
    # With requests that had no answer both are lower bounds.
    censored = counts_of is not None and counts_of.unanswered_count > 0
    confidence = line.estimate.confidence
    return Estimate(float(value), None, None, confidence, n, "ns", method="", censored=censored)
