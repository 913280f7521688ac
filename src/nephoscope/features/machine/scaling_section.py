"""How work scales over threads: measured rates beside the line of perfect scaling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nephoscope import catalog
from nephoscope.core.grouping import group_by
from nephoscope.core.model import Better, Estimate, MetricResult, RunResult
from nephoscope.report import charts, figures, palette, selection, wording
from nephoscope.report.blocks import Block, Chart, Section, Sentence
from nephoscope.report.columns import estimate, number, table, text
from nephoscope.report.selection import Sweep
from nephoscope.results.machine_figures import MachineFigures

BENCHMARKS = catalog.ids_where(
    lambda spec: any(metric.scales_with_threads for metric in spec.metrics)
)
MAX_ANSWERS = 4


def build(result: RunResult) -> Section | None:
    """A curve per benchmark where threads were varied, else dots."""
    blocks: list[Block] = []
    for benchmark in BENCHMARKS:
        blocks += _benchmark(result, benchmark)
    if not blocks:
        return None
    if not any(_swept(_rates(selection.of_benchmark(result, name))) for name in BENCHMARKS):
        return Section(
            "scaling", "CPU speed", (Sentence("Rate of the same work in each trial."), *blocks)
        )
    intro = (
        "The same work on 1 to N threads. The grey line is N times the rate of one thread: "
        "ideal scaling of CPUs that share nothing."
    )
    return Section("scaling", "Scaling with threads", (Sentence(intro), *blocks))


def answer(result: RunResult) -> list[str]:
    """Returns how work scales with threads, where a run varied little else."""
    machine_figures = result.part(MachineFigures)
    scaling = machine_figures.scaling if machine_figures else ()
    if len(scaling) > MAX_ANSWERS or selection.is_built_in(result):
        return []
    several = len(selection.target_names(result)) > 1
    return [
        wording.clean(
            f"{f'{scaling.target}: ' if several else ''}{scaling.sentence(max(scaling.efficiency))}"
        )
        for scaling in scaling
        if scaling.efficiency
    ]


def _rates(metrics: Sequence[MetricResult]) -> Sequence[MetricResult]:
    """The rates of all threads; those of single threads where the benchmark has no others."""
    rates = [metric for metric in metrics if metric.better is Better.HIGHER]
    return [metric for metric in rates if metric.headline] or rates


def _swept(rates: Sequence[MetricResult]) -> Sequence[Sweep]:
    return selection.sweeps(rates, "threads")[: selection.MAX_CURVES]


def _benchmark(result: RunResult, benchmark: str) -> list[Chart]:
    metrics = selection.of_benchmark(result, benchmark)
    swept = _swept(_rates(metrics))
    if not swept:
        headline = [metric for metric in metrics if metric.headline] or metrics
        return charts.by_unit(headline, benchmark)
    # One figure a unit: rates of digits and of bytes have no common axis.
    by_unit = group_by(swept, lambda sweep: sweep.points[0].estimate.unit)
    return [
        _chart(result, benchmark, unit, own, number)
        for number, (unit, own) in enumerate(sorted(by_unit.items()))
    ]


def _chart(
    result: RunResult, benchmark: str, unit: str, swept: Sequence[Sweep], position: int
) -> Chart:
    names, curves, _ = charts.sweep_curves(
        swept, "threads", lambda x: wording.plural(int(x), "thread")
    )
    title = wording.metric_name(swept[0].metric)
    most = max(sweep.x[-1] for sweep in swept)
    figure = figures.lines(
        curves,
        figures.Axis("threads", "count"),
        figures.Axis(title, unit, from_zero=True),
        height=360,
    )
    figure["layout"]["xaxis"] |= _thread_ticks(most)
    _add_ideal(figure, swept)
    known = result.part(MachineFigures) or MachineFigures()

    def ideal(row: tuple[str, Sweep, float, Estimate]) -> Estimate | None:
        return known.efficiency(row[1].key).get(int(row[2]))

    def ends(row: tuple[str, Sweep, float, Estimate]) -> str:
        """Returns the interval of the share; with its n where that of the row differs."""
        share = ideal(row)
        if share is None:
            return ""
        n = "" if share.n == row[3].n else f" (n = {share.n})"
        return f"{wording.interval_text(share)}{n}"

    data = table(
        [
            (name, sweep, x, point.estimate)
            for name, sweep in zip(names, swept, strict=True)
            for x, point in zip(sweep.x, sweep.points, strict=True)
        ],
        text("curve", lambda row: row[0]),
        text("threads", lambda row: int(row[2])),
        *estimate("value", lambda row: row[3]),
        number("of ideal", ideal),
        number("interval", ends),
    )
    return Chart(
        f"scaling-{wording.slug(benchmark)}-{position}",
        f"{wording.full_name(benchmark, swept[0].metric)} by number of threads",
        figure,
        data,
        brief=data,
    )


def _thread_ticks(most: float) -> dict[str, Any]:
    """Whole threads only, at most about sixteen ticks."""
    step = max(1, round(most / 16))
    places = list(range(step if step > 1 else 1, int(most) + 1, step))
    return {
        "tickmode": "array",
        "tickvals": places,
        "ticktext": [str(place) for place in places],
        "range": [1 - 0.08 * most, most * 1.05],
    }


def _add_ideal(figure: dict[str, Any], swept: Sequence[Sweep]) -> None:
    """The line of perfect scaling from the first curve's smallest number of threads."""
    first = swept[0]
    start, rate = first.x[0], first.points[0].estimate.value
    ends = [start, first.x[-1]]
    heights = [rate / start * threads for threads in ends]
    figure["data"].insert(
        0,
        {
            "type": "scatter",
            "mode": "lines",
            "name": "ideal (N times one thread)",
            "x": ends,
            "y": heights,
            "line": {"color": palette.NEUTRAL, "dash": "dash", "width": 1.5},
            "hoverinfo": "skip",
        },
    )
    figure["layout"]["showlegend"] = True
    # The vertical axis reaches the line's end, too.
    values = [value for trace in figure["data"] for value in trace["y"]]
    unit = first.points[0].estimate.unit
    axis = figures.Axis(wording.metric_name(first.metric), unit, from_zero=True)
    figure["layout"]["yaxis"] |= figures.axis_of(axis, values)
