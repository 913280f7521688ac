"""Charts that several sections share: distributions, dots with intervals, curves over a factor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nephoscope import units
from nephoscope.grouping import group_by
from nephoscope.model import MetricResult, RunResult
from nephoscope.report import figures, selection, wording
from nephoscope.report.blocks import Chart, Column, Spark, Table
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
    curves, rows, brief = [], [], []
    per_curve = max(6, CDF_ROWS // len(named))
    for name, (values, counts) in named:
        steps = selection.cumulative(values, counts)
        curves.append(_cdf_curve(name, steps, unit, log))
        rows += [
            (name, units.format_value(value, unit), _share(share), f"{seen:,}")
            for value, share, seen in selection.thin_steps(steps, per_curve)[:per_curve]
        ]
        brief.append((name, f"{sum(counts):,}", *_quantiles(steps, unit)))
    figure = figures.lines(
        curves,
        figures.Axis(axis, unit, log=log, from_zero=not log),
        figures.Axis("Cumulative share", "ratio", from_zero=True),
        markers=False,
        reach=reach,
    )
    most = "longest" if unit == "ns" else "greatest"
    head = (Column("curve"), *Column.numbers("n", *(name or most for _, name in _QUANTILES)))
    data = Table((Column("curve"), *Column.numbers(axis, "share", "count")), tuple(rows))
    quantiles = Table(head, tuple(brief), "Quantiles of all counted events, pooled over trials:")
    return [Chart(id, title, figure, data, caption, brief=quantiles)]


def _named_histograms(
    result: RunResult, keys: Sequence[HistogramKey]
) -> list[tuple[str, tuple[list[float], list[int]]]]:
    targets = len({key[2] for key in keys})
    if len(keys) <= selection.MAX_CURVES:
        common = selection.common_factors([selection.key_factors(key) for key in keys])
        return [(selection.key_name(key, targets, common), _sorted(result, [key])) for key in keys]
    # Too many to tell apart (one a CPU, say): one curve a target, of all of them together.
    names = dict.fromkeys(key[2] for key in keys)
    return [
        (
            f"{wording.clean(target)}, all {sum(key[2] == target for key in keys)} together",
            _sorted(result, [key for key in keys if key[2] == target]),
        )
        for target in names
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
    out = []
    for q, _ in _QUANTILES:
        enough = q in (0.5, 1.0) or total * (1 - q) >= 10
        out.append(units.format_value(selection.nearest_rank(steps, q), unit) if enough else "–")
    return out


def dots(metrics: Sequence[MetricResult], *, id: str, title: str, caption: str = "") -> Chart:
    """Values of one unit as dots with their intervals."""
    targets = len({metric.target for metric in metrics})
    common = selection.common_factors([metric.factors for metric in metrics])
    one_name = len({metric.metric for metric in metrics}) == 1
    names = [
        _name(one.metric, one.target, one.factors, targets, common, one_name) for one in metrics
    ]
    estimates = [metric.estimate for metric in metrics]
    unit = estimates[0].unit
    values = [one.value for one in estimates]
    axis = wording.metric_name(metrics[0].metric) if one_name else "value"
    wide = min(values) > 0 and max(values) / min(values) > 30
    # Dots need no zero, and on an axis from zero the intervals of steady figures would vanish.
    ends = [end for one in estimates for end in (one.value, one.low, one.high) if end is not None]
    narrow = min(ends) > 0.7 * max(ends) > 0
    axis += " (axis does not start at 0)" if narrow and not wide else ""
    figure = figures.dots(
        list(zip(names, estimates, strict=True)),
        figures.Axis(axis, unit, log=wide, from_zero=not wide and not narrow),
    )
    rows = [(name, *estimate_cells(metric)) for name, metric in zip(names, metrics, strict=True)]
    table = Table(estimate_columns("what"), tuple(rows))
    told = all(metric.headline for metric in metrics)  # in the tables of what is delivered
    return Chart(id, title, figure, table, caption, repeats=told)


def by_unit(metrics: Sequence[MetricResult], benchmark: str) -> list[Chart]:
    """One chart of dots for each unit among the metrics of a benchmark, percentiles apart."""
    groups = group_by(metrics, lambda metric: (metric.estimate.unit, metric.better.value))
    out = []
    for number, ((unit, _), own) in enumerate(sorted(groups.items())):
        names = list(dict.fromkeys(wording.metric_name(metric.metric) for metric in own))
        what = wording.joined(names) if len(names) < 4 else units.quantity_of(unit)
        title = f"{wording.clean(benchmark)}: {what}"
        if len(names) == 1:
            title = wording.full_name(own[0].benchmark, own[0].metric)
        caption = ""
        if len(own) > MAX_DOTS:
            caption = f"Shows {MAX_DOTS} of {len(own)} results; the tables above list all of them."
        id = f"dots-{wording.slug(benchmark)}-{number}"
        out.append(dots(own[:MAX_DOTS], id=id, title=title, caption=caption))
    return out


def _name(
    metric: str,
    target: str,
    factors: Mapping[str, Any],
    targets: int,
    common: Mapping[str, Any],
    one_name: bool,
) -> str:
    """Metric, target and factors, each only where it tells lines of a chart apart."""
    parts = [
        "" if one_name else wording.metric_name(metric),
        wording.clean(target) if targets > 1 else "",
        wording.factors_text(factors, leave_out=common),
    ]
    return ", ".join(part for part in parts if part) or wording.metric_name(metric)


def estimate_columns(*first: str) -> tuple[Column, ...]:
    """Columns of a table of estimates, behind the columns that say of what."""
    return (*Column.texts(*first), *Column.numbers("value", "interval", "n"))


def estimate_cells(metric: MetricResult) -> tuple[str, str, str]:
    """Value, interval and n of a metric, for a table's row."""
    estimate = metric.estimate
    return wording.value_text(estimate), wording.interval_text(estimate), str(estimate.n)


def sweep_names(sweeps: Sequence[Sweep]) -> list[str]:
    """Names of curves that share one figure: metric, target, factors where they tell them apart."""
    targets = len({sweep.target for sweep in sweeps})
    one_name = len({sweep.metric for sweep in sweeps}) == 1
    common = selection.common_factors([sweep.fixed for sweep in sweeps])
    return [
        _name(sweep.metric, sweep.target, sweep.fixed, targets, common, one_name)
        for sweep in sweeps
    ]


def sweep_curve(name: str, sweep: Sweep, x_text: Sequence[str]) -> figures.Curve:
    """A curve with the interval of each of its points."""
    estimates = [point.estimate for point in sweep.points]
    hover = [
        f"{name}, {place}: {wording.estimate_text(estimate)}"
        for place, estimate in zip(x_text, estimates, strict=True)
    ]
    return figures.curve_of(name, sweep.x, estimates, hover)


def sweep_rows(name: str, sweep: Sweep, x_text: Sequence[str]) -> list[tuple[str, ...]]:
    """Rows of the data table: curve, level, value, interval, n."""
    return [
        (name, place, *estimate_cells(point))
        for place, point in zip(x_text, sweep.points, strict=True)
    ]


def sweep_curves(
    sweeps: Sequence[Sweep], x_text: Callable[[float], str]
) -> tuple[list[str], list[figures.Curve], tuple[tuple[str, ...], ...]]:
    """The names of curves that share one figure, the curves, and the rows of their data table."""
    names = sweep_names(sweeps)
    curves: list[figures.Curve] = []
    rows: list[tuple[str, ...]] = []
    for name, sweep in zip(names, sweeps, strict=True):
        places = [x_text(x) for x in sweep.x]
        curves.append(sweep_curve(name, sweep, places))
        rows += sweep_rows(name, sweep, places)
    return names, curves, tuple(rows)


def sweep_spark(name: str, sweep: Sweep, unit: str) -> Spark:
    """The curve in one line of text, from its first to its last value."""
    values = tuple(point.estimate.value for point in sweep.points)
    first, last = (units.format_value(value, unit, 2) for value in (values[0], values[-1]))
    return Spark(name, values, first, last, log=min(values) > 0)
