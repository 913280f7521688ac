"""Charts that several sections share: distributions, dots with intervals, curves over a factor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nephoscope.core import units
from nephoscope.core.grouping import group_by
from nephoscope.core.model import Estimate, MetricResult, RunResult
from nephoscope.core.naming import common_factors
from nephoscope.report import figures, selection, wording
from nephoscope.report.blocks import Chart, Spark, Table
from nephoscope.report.columns import count, estimate, estimates_table, number, spread, table, text
from nephoscope.report.selection import HistogramKey, Sweep

CDF_ROWS = 60
"""Rows of the data table behind one CDF chart, all its curves together."""

MAX_DOTS = 40
"""Lines of one chart of dots."""

_QUANTILES = ((0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9"), (1.0, ""))


def cdf(
    result: RunResult,
    keys: Sequence[HistogramKey],
    *,
    id: str,
    title: str,
    axis: str,
    unit: str,
    caption: str = "",
    log: bool = True,
    reach: Sequence[float] = (),
) -> list[Chart]:
    """Cumulative distributions of histograms in one chart; nothing if there are none.

    log: on a logarithmic axis, which has no place for zero and less; else on a linear one, for
    distributions that stand on few values or cross zero. reach: further values that the axis holds.
    """
    named = _named_histograms(result, keys)
    named = [(name, data) for name, data in named if data[0] and (data[0][-1] > 0 or not log)]
    if not named:
        return []
    curves, rows, quantiles = [], [], []
    per_curve = max(6, CDF_ROWS // len(named))
    for name, (values, counts) in named:
        steps = selection.cumulative(values, counts)
        curves.append(_cdf_curve(name, steps, unit, log))
        rows += [(name, *step) for step in selection.thin_steps(steps, per_curve)[:per_curve]]
        quantiles.append((name, sum(counts), _quantiles(steps, unit)))
    figure = figures.lines(
        curves,
        figures.Axis(axis, unit, log=log, from_zero=not log),
        figures.Axis("Cumulative share", "ratio", from_zero=True),
        markers=False,
        reach=reach,
    )
    most = "longest" if unit == "ns" else "greatest"
    data = table(
        rows,
        text("curve", lambda row: row[0]),
        number(axis, lambda row: row[1], unit),
        number("share", lambda row: _share(row[2])),
        count("count", lambda row: row[3]),
    )
    brief = table(
        quantiles,
        text("curve", lambda row: row[0]),
        count("n", lambda row: row[1]),
        *spread((name or most for _, name in _QUANTILES), lambda row: row[2]),
        caption="Quantiles of all counted events, pooled over trials:",
    )
    return [Chart(id, title, figure, data, caption, brief=brief)]


def _named_histograms(
    result: RunResult, keys: Sequence[HistogramKey]
) -> list[tuple[str, tuple[list[float], list[int]]]]:
    if len(keys) <= selection.MAX_CURVES:
        names = _distinct_names([(key[1], key[2], selection.key_factors(key)) for key in keys])
        return [(name, _sorted(result, [key])) for name, key in zip(names, keys, strict=True)]
    # Too many to tell apart (one a CPU, say): one curve a target, of all of them together.
    return [
        (
            f"{wording.clean(target)}, all {sum(key[2] == target for key in keys)} together",
            _sorted(result, [key for key in keys if key[2] == target]),
        )
        for target in dict.fromkeys(key[2] for key in keys)
    ]


def _sorted(result: RunResult, keys: Sequence[HistogramKey]) -> tuple[list[float], list[int]]:
    return selection.merge_histograms(result.histograms[key] for key in keys)


def _cdf_curve(
    name: str, steps: Sequence[tuple[float, float, int]], unit: str, log: bool
) -> figures.Curve:
    drawn = selection.thin_steps(steps, figures.CDF_POINTS)
    # From the ground up, else a distribution of one value would be a point.
    drawn = [(steps[0][0], 0.0, 0), *drawn]
    drawn = [step for step in drawn if step[0] > 0 or not log]
    return figures.Curve(
        name,
        tuple(value for value, _, _ in drawn),
        tuple(share for _, share, _ in drawn),
        hover=tuple(
            f"{name}: {_share(share)} at most {units.format_value(value, unit)}"
            for value, share, _ in drawn
        ),
        step=True,
    )


def _share(share: float) -> str:
    """A cumulative share, with more digits the nearer it is to all."""
    return "100 %" if share >= 1 else f"{share * 100:.{2 if share < 0.999 else 4}f} %"


def _quantiles(steps: Sequence[tuple[float, float, int]], unit: str) -> list[str]:
    """Quantiles of the merged counts; '' where fewer than ten events lie beyond."""
    total = steps[-1][2]
    return [
        units.format_value(selection.nearest_rank(steps, q), unit)
        if q in (0.5, 1.0) or total * (1 - q) >= 10
        else "–"
        for q, _ in _QUANTILES
    ]


def dots(metrics: Sequence[MetricResult], *, id: str, title: str, caption: str = "") -> Chart:
    """Values of one unit as dots with their intervals."""
    names = _distinct_names([(metric.metric, metric.target, metric.factors) for metric in metrics])
    one_name = len({metric.metric for metric in metrics}) == 1
    estimates = [metric.estimate for metric in metrics]
    unit = estimates[0].unit
    values = [estimate.value for estimate in estimates]
    axis = wording.metric_name(metrics[0].metric) if one_name else "value"
    wide = min(values) > 0 and max(values) / min(values) > 30
    # Dots need no zero, and on an axis from zero the intervals of steady figures would vanish.
    ends = figures.ends_of(estimates)
    narrow = min(ends) > 0.7 * max(ends) > 0
    axis += " (axis does not start at 0)" if narrow and not wide else ""
    named = list(zip(names, estimates, strict=True))
    figure = figures.dots(
        named,
        figures.Axis(axis, unit, log=wide, from_zero=not wide and not narrow),
    )
    repeats = all(metric.headline for metric in metrics)  # in the tables of what is delivered
    return Chart(id, title, figure, estimates_table(named, "what"), caption, repeats=repeats)


def by_unit(metrics: Sequence[MetricResult], benchmark: str) -> list[Chart]:
    """One chart of dots for each unit among the metrics of a benchmark, percentiles apart."""
    groups = group_by(metrics, lambda metric: (metric.estimate.unit, metric.better.value))
    out = []
    for place, ((unit, _), own) in enumerate(sorted(groups.items())):
        names = list(dict.fromkeys(wording.metric_name(metric.metric) for metric in own))
        what = wording.joined(names) if len(names) < 4 else units.quantity_of(unit)
        title = f"{wording.clean(benchmark)}: {what}"
        if len(names) == 1:
            title = wording.full_name(own[0].benchmark, own[0].metric)
        caption = ""
        if len(own) > MAX_DOTS:
            caption = f"Shows {MAX_DOTS} of {len(own)} results; the tables above list all of them."
        id = f"dots-{wording.slug(benchmark)}-{place}"
        out.append(dots(own[:MAX_DOTS], id=id, title=title, caption=caption))
    return out


def _distinct_names(lines: Sequence[tuple[str, str, Mapping[str, Any]]]) -> list[str]:
    """Returns metric, target and factors of each line of a chart, where they tell lines apart.

    Where nothing does, the name is that of the metric.
    """
    metrics, targets = ({line[part] for line in lines} for part in (0, 1))
    common = common_factors([factors for _, _, factors in lines])
    names = []
    for metric, target, factors in lines:
        parts = [
            wording.metric_name(metric) if len(metrics) > 1 else "",
            wording.clean(target) if len(targets) > 1 else "",
            wording.factors_text(factors, leave_out=common),
        ]
        names.append(", ".join(filter(None, parts)) or wording.metric_name(metric))
    return names


def sweep_names(sweeps: Sequence[Sweep]) -> list[str]:
    """Names of curves that share one figure: metric, target, factors where they tell them apart."""
    return _distinct_names([(sweep.metric, sweep.target, sweep.fixed) for sweep in sweeps])


def sweep_curves(
    sweeps: Sequence[Sweep], title: str, x_text: Callable[[float], str], name_title: str = "curve"
) -> tuple[list[str], list[figures.Curve], Table]:
    """The names of curves that share one figure, the curves, and their data table.

    Points have intervals. title: of the column of levels; name_title: of that of names.
    """
    names = sweep_names(sweeps)
    curves: list[figures.Curve] = []
    rows: list[tuple[str, str, Estimate]] = []
    for name, sweep in zip(names, sweeps, strict=True):
        points = [point.estimate for point in sweep.points]
        own = [
            (name, place, point) for place, point in zip(map(x_text, sweep.x), points, strict=True)
        ]
        hover = [f"{name}, {place}: {wording.estimate_text(item)}" for _, place, item in own]
        curves.append(figures.curve_of(name, sweep.x, points, hover))
        rows += own
    data = table(
        rows,
        text(name_title, lambda row: row[0]),
        text(title, lambda row: row[1]),
        *estimate("value", lambda row: row[2]),
    )
    return names, curves, data


def sweep_spark(name: str, sweep: Sweep, unit: str) -> Spark:
    """The curve in one line of text, from its first to its last value."""
    values = tuple(point.estimate.value for point in sweep.points)
    first, last = (units.format_value(value, unit, 2) for value in (values[0], values[-1]))
    return Spark(name, values, first, last, log=min(values) > 0)
