"""Latency and rate by offered load, with knee and objectives; distributions by configuration."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope.core import units
from nephoscope.core.model import MetricResult, RunResult
from nephoscope.core.naming import common_factors
from nephoscope.features.load.result import generators
from nephoscope.report import charts, figures, selection, violins, wording
from nephoscope.report.blocks import Block, Chart, Sentence
from nephoscope.report.columns import estimates_table, spread, table, text
from nephoscope.report.selection import Sweep
from nephoscope.results.names import AUXILIARY_FACTORS

_LATENCIES = ("latency_p50_ns", "latency_p90_ns", "latency_p99_ns")
_CHARTS = (
    ("rate_per_s", _LATENCIES, True),
    ("connections", _LATENCIES, True),
    ("connections", ("requests_per_s",), False),
)
"""Factor, metrics, and whether their axis is logarithmic."""

_OBJECTIVES_NS = (1_000_000, 10_000_000, 100_000_000)
"""Limits of the 99th percentile for which the highest rate within them is listed."""

_FEWEST_RATES = 3
_MAX_KNEES_DRAWN = 3
_MAX_CONFIGURATIONS = 10


def by_load(result: RunResult) -> list[Block]:
    """Latency by offered rate, and rate by number of connections, where a run varies them."""
    blocks: list[Block] = []
    for factor, metrics, log in _CHARTS:
        by_benchmark: dict[str, list[Sweep]] = {}
        for sweep in selection.sweeps(_own(result, *metrics), factor):
            by_benchmark.setdefault(sweep.benchmark, []).append(sweep)
        for benchmark, swept in by_benchmark.items():
            chart = _curve(benchmark, factor, swept[: selection.MAX_CURVES], log=log)
            blocks.append(chart)
            if factor == "rate_per_s":
                _draw_knees(chart, swept)
                blocks += _limits(swept)
    return blocks


def by_configuration(result: RunResult) -> list[Chart]:
    """The trials of each configuration as violins, where a run has several."""
    drawn = []
    for benchmark in sorted(generators()):
        for metric in ("requests_per_s", "latency_p99_ns"):
            own = [
                line
                for line in _own(result, metric)
                if line.benchmark == benchmark
                and len(line.trial_values) >= violins.FEWEST
                # The rate of an open loop is the one that was set.
                and (metric != "requests_per_s" or not _is_open(line))
            ]
            if 2 <= len(own) <= _MAX_CONFIGURATIONS:
                drawn.append(_violins(benchmark, own))
    return drawn


def _is_open(line: MetricResult) -> bool:
    return "rate_per_s" in line.factors and line.factors.get("arrivals") != "closed"


def knee(sweep: Sweep) -> float | None:
    """Returns the offered rate of highest power: rate over latency (Kleinrock 1979).

    None where the highest rate has it (the knee lies beyond), and for fewer than three rates. A
    rate whose latency is known as a lower bound only lies beyond the knee.
    """
    power = [
        x / point.estimate.value
        if point.estimate.value > 0 and not point.estimate.censored
        else 0.0
        for x, point in zip(sweep.x, sweep.points, strict=True)
    ]
    best = power.index(max(power))
    is_none = len(power) < _FEWEST_RATES or best == len(power) - 1 or not power[best]
    return None if is_none else sweep.x[best]


def highest_within(sweep: Sweep, limit_ns: float) -> float | None:
    """Returns the rate up to which the whole interval of the latency lies below the limit."""
    highest = None
    for x, point in zip(sweep.x, sweep.points, strict=True):
        if point.estimate.high is None or point.estimate.high >= limit_ns:
            break
        highest = x
    return highest


def _own(result: RunResult, *metrics: str) -> list[MetricResult]:
    """Lines of the generators themselves, not of generators that run as a load."""
    return [
        line
        for line in result.metrics
        if line.benchmark in generators()
        and line.metric in metrics
        and not AUXILIARY_FACTORS & line.factors.keys()
    ]


def _curve(benchmark: str, factor: str, swept: Sequence[Sweep], *, log: bool) -> Chart:
    unit = swept[0].points[0].estimate.unit
    x_unit = "per_s" if factor.endswith("_per_s") else "count"
    levels = factor.replace("_", " ")
    _, curves, data = charts.sweep_curves(swept, levels, lambda x: units.format_value(x, x_unit))
    title = "latency" if unit == "ns" else "valid responses"
    quantity = factor.removesuffix("_per_s").replace("_", " ")
    figure = figures.lines(
        curves,
        figures.Axis(quantity, x_unit),
        figures.Axis(title, unit, log=log, from_zero=not log),
    )
    slug = wording.slug(f"{benchmark}-{title}")
    return Chart(f"load-{slug}", f"{benchmark}: {title} by {quantity}", figure, data, brief=data)


def _draw_knees(chart: Chart, swept: Sequence[Sweep]) -> None:
    knees = {knee(sweep) for sweep in swept if sweep.metric == "latency_p50_ns"} - {None}
    if len(knees) <= _MAX_KNEES_DRAWN:
        for x in sorted(x for x in knees if x is not None):
            figures.vertical(chart.figure["layout"], x, "knee", log=False)


def _limits(swept: Sequence[Sweep]) -> list[Block]:
    """The knee, and the highest rate within each objective, of every configuration."""
    medians = {sweep.key[2:]: sweep for sweep in swept if sweep.metric == "latency_p50_ns"}
    tails = [sweep for sweep in swept if sweep.metric == "latency_p99_ns"]
    names = charts.sweep_names(tails)
    rows = []
    for name, tail in zip(names, tails, strict=True):
        median = medians.get(tail.key[2:])
        rates = [knee(median) if median else None]
        rows.append((name, [*rates, *(highest_within(tail, limit) for limit in _OBJECTIVES_NS)]))
    if not rows:
        return []
    limits = (f"p99 < {units.format_value(float(limit), 'ns')}" for limit in _OBJECTIVES_NS)
    return [
        Sentence(
            "Knee: the offered rate with the highest ratio of rate to median latency; none where "
            "the highest rate has it. Objectives: the highest offered rate up to which the whole "
            "interval of the 99th percentile lies below the limit."
        ),
        table(
            rows,
            text("configuration", lambda row: row[0]),
            *spread(("knee", *limits), lambda row: row[1], "per_s"),
        ),
    ]


def _violins(benchmark: str, own: Sequence[MetricResult]) -> Chart:
    targets = len({line.target for line in own})
    common = common_factors([line.factors for line in own])
    names = [
        wording.setting_text(line, targets, common) or wording.clean(line.target) for line in own
    ]
    groups = [
        violins.ViolinGroup(name, "trials", tuple(line.trial_values))
        for name, line in zip(names, own, strict=True)
    ]
    quantity = wording.metric_name(own[0].metric)
    axis = figures.Axis(quantity, own[0].estimate.unit, from_zero=True)
    estimates = zip(names, (line.estimate for line in own), strict=True)
    data = estimates_table(estimates, "configuration")
    return Chart(
        f"load-trials-{wording.slug(benchmark)}-{wording.slug(quantity)}",
        f"{benchmark}: {quantity} of each trial by configuration",
        violins.violins(names, ["trials"], groups, axis),
        data,
        "Each point is a trial; the outline is their density, the box has median and quartiles.",
    )
