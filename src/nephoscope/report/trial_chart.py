"""Draws the trials of the headline results, each relative to the median of its result."""

from __future__ import annotations

import statistics

from nephoscope.core import units
from nephoscope.core.model import MetricResult, RunResult
from nephoscope.report import figures, selection, summary, wording
from nephoscope.report.blocks import Chart, Section
from nephoscope.report.columns import number, table, text
from nephoscope.results import feature

MIN_TRIALS = 3
OWN_CHARTS = ("experiment", "isolation", "simulation")
"""Features whose sections begin the page with a chart of their own."""

_CAPTION = (
    "Each valid trial relative to the median of its result, in order of the rounds. A flat line at "
    "100 % is a machine that delivers the same all the time."
)


def build(result: RunResult) -> Section | None:
    """Returns the chart; None where the page has another one at its beginning."""
    if any(entry.name in OWN_CHARTS for entry, _ in feature.contributing(result.parts)):
        return None
    several = len(selection.target_names(result)) > 1
    drawn: list[tuple[str, str, figures.Curve]] = []
    chosen = summary.headline_figures(result, summary.MAX_TILES)
    labels = [label for label, _, _ in chosen]
    for label, setting, metric in chosen:
        name = f"{wording.clean(metric.target)}: {label}" if several else label
        if setting and labels.count(label) > 1:
            name += f" ({setting})"
        curve = _curve(name, metric)
        if curve is not None:
            drawn.append((name, setting, curve))
    if not drawn:
        return None
    curves = [curve for _, _, curve in drawn]
    figure = figures.lines(
        curves, figures.Axis("round", "count"), figures.Axis("relative to the median", "ratio")
    )
    data = table(
        drawn,
        text("result", lambda row: row[0]),
        text("setting", lambda row: row[1]),
        number("n", lambda row: len(row[2].y)),
        number("minimum", lambda row: min(row[2].y), "ratio"),
        number("maximum", lambda row: max(row[2].y), "ratio"),
    )
    title = "Headline results over the run"
    chart = Chart("headline-trials", title, figure, data, _CAPTION, repeats=True)
    return Section("stability", "Stability", (chart,))


def _curve(name: str, metric: MetricResult) -> figures.Curve | None:
    """Returns the trials of a metric by round; None where there are too few or none is 100 %."""
    pairs = sorted(zip(metric.rounds, metric.trial_values, strict=False))
    middle = statistics.median(value for _, value in pairs) if pairs else 0.0
    if len(pairs) < MIN_TRIALS or middle <= 0:
        return None
    return figures.Curve(
        name,
        tuple(float(number) for number, _ in pairs),
        tuple(value / middle for _, value in pairs),
        hover=tuple(
            f"{name}, round {number}: {units.format_value(value, metric.estimate.unit)}"
            for number, value in pairs
        ),
    )
