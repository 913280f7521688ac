"""Draws a study's figures: measured values as curves or bars, published numbers as crosses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nephoscope.features.studies.comparison.figures import (
    FilledFigure,
    MeasuredCurve,
    PublishedPoint,
)
from nephoscope.features.studies.comparison.predictions import ModelPrediction
from nephoscope.features.studies.report.wording import estimate_text, interval_text
from nephoscope.report import figures, palette, wording
from nephoscope.report.blocks import Chart, Table, thin
from nephoscope.report.columns import number, table, text

_PUBLISHED_COLOUR = "#d62728"
_MAX_ROWS = 60
_HEIGHT = 360


def chart(figure: FilledFigure) -> Chart:
    """Returns one figure with the table of its data."""
    layout = figure.layout
    draw = {"samples": _samples, "bars": _bars, "lines": _lines}[layout.kind]
    drawing = draw(figure)
    names = [curve.name for curve in figure.curves]
    for name in dict.fromkeys(point.curve for point in figure.points):
        colour = palette.style(names.index(name))[0] if name in names else _PUBLISHED_COLOUR
        points = [point for point in figure.points if point.curve == name]
        drawing["data"].append(_crosses(points, colour))
    drawing["layout"]["showlegend"] = True
    caption = f"{layout.why} Crosses are published numbers." if figure.points else layout.why
    title = f"{layout.figure}: {layout.title}"
    return Chart(f"{figure.part}-{layout.id}", title, drawing, _table(figure), caption)


def prediction_chart(prediction: ModelPrediction) -> Chart:
    """Returns the measured beside the simulated value of each condition."""
    compared = [value for value in prediction.values if value.measured and value.simulated]
    names = [value.name for value in compared]
    data, ends = [], []
    for at, side in enumerate(("measured", "simulated")):
        estimates = [getattr(value, side) for value in compared]
        colour, _, symbol = palette.style(at)
        values = [estimate.value for estimate in estimates]
        lows = [estimate.low for estimate in estimates]
        highs = [estimate.high for estimate in estimates]
        ends += [end for end in (*values, *lows, *highs) if end is not None and end > 0]
        data.append(
            figures.trace(
                side,
                values,
                [row + 0.3 * at - 0.15 for row in range(len(names))],
                [
                    f"{name}, {side}: {estimate_text(estimate, prediction.unit)}"
                    for name, estimate in zip(names, estimates, strict=True)
                ],
                mode="markers",
                marker={"color": colour, "symbol": symbol, "size": 9},
                error_x=figures.error_bars(values, lows, highs) | {"color": colour},
            )
        )
    x_axis = figures.axis_of(figures.Axis(f"value ({prediction.unit})", "none", log=True), ends)
    y_axis = figures.named_ticks(names, range=[len(names) - 0.5, -0.5])
    layout = figures.layout(x_axis, y_axis, height=110 + 34 * len(names))
    sides = [
        (value.name, side, estimate)
        for value in compared
        for side, estimate in (("measured", value.measured), ("simulated", value.simulated))
    ]
    rows = table(
        sides,
        text("condition", lambda row: row[0]),
        text("side", lambda row: row[1]),
        text("value", lambda row: estimate_text(row[2], prediction.unit)),
    )
    title = f"Measured and simulated: {prediction.title}"
    slug = wording.slug(f"{prediction.part}-{prediction.title}")
    return Chart(f"prediction-{slug}", title, {"data": data, "layout": layout}, rows)


def _y_axis(figure: FilledFigure, *, from_zero: bool = False) -> figures.Axis:
    title = f"{figure.layout.y} ({figure.layout.unit})" if figure.layout.unit else figure.layout.y
    return figures.Axis(title, "none", from_zero=from_zero)


def _all_y(figure: FilledFigure) -> list[float]:
    """Every value and every end of an interval, measured and published."""
    values: list[float | None] = [y for curve in figure.curves for y in curve.y]
    values += [point.value for point in figure.points]
    for curve in figure.curves:
        values += [end for estimate in curve.estimates for end in (estimate.low, estimate.high)]
    for point in figure.points:
        values += [point.figure.low, point.figure.high]
    return [value for value in values if value is not None]


def _samples(figure: FilledFigure) -> dict[str, Any]:
    data = []
    for index, curve in enumerate(figure.curves):
        colour, _, symbol = palette.style(index)
        data.append(
            figures.trace(
                curve.name,
                curve.x,
                curve.y,
                [
                    f"{curve.name}, sample {x:g}: {_sample_text(y, figure)}"
                    for x, y in zip(curve.x, curve.y, strict=True)
                ],
                marker={"color": colour, "symbol": symbol, "size": 7},
            )
        )
    numbers = [float(x) for curve in figure.curves for x in curve.x]
    x_axis = figures.axis_of(figures.Axis(figure.layout.x, "count"), numbers)
    y_axis = figures.axis_of(_y_axis(figure), _all_y(figure))
    return {"data": data, "layout": figures.layout(x_axis, y_axis, height=_HEIGHT)}


def _lines(figure: FilledFigure) -> dict[str, Any]:
    curves = [
        figures.curve_of(
            curve.name, [float(x) for x in curve.x], curve.estimates, _hover(curve, figure), curve.y
        )
        for curve in figure.curves
    ]
    y_axis = _y_axis(figure, from_zero=True)
    drawing = figures.lines(curves, figures.Axis(figure.layout.x, "count"), y_axis)
    drawing["layout"]["yaxis"] |= figures.axis_of(y_axis, _all_y(figure))
    return drawing


def _bars(figure: FilledFigure) -> dict[str, Any]:
    data = []
    for index, curve in enumerate(figure.curves):
        bars = figures.error_bars(
            curve.y,
            [estimate.low for estimate in curve.estimates],
            [estimate.high for estimate in curve.estimates],
        )
        data.append(
            figures.trace(
                curve.name,
                [str(x) for x in curve.x],
                curve.y,
                _hover(curve, figure),
                type="bar",
                marker={"color": palette.translucent(palette.style(index)[0], 0.75)},
                error_y=bars,
            )
        )
    levels = map(str, figure.layout.levels.values())
    positions = dict.fromkeys([*levels, *(str(x) for curve in figure.curves for x in curve.x)])
    x_axis = figures.axis_of(figures.Axis(figure.layout.x, "none", categories=True), [])
    x_axis |= {"categoryorder": "array", "categoryarray": list(positions)}
    y_axis = figures.axis_of(_y_axis(figure, from_zero=True), _all_y(figure))
    layout = {**figures.layout(x_axis, y_axis, height=_HEIGHT), "barmode": "group"}
    return {"data": data, "layout": layout}


def _crosses(points: Sequence[PublishedPoint], colour: str) -> dict[str, Any]:
    """Published numbers of one curve, with an interval where the study gives one."""
    name = f"{_published_name(points[0])} ({points[0].figure.source})"
    values = [point.value for point in points]
    lows, highs = ([point.figure.low for point in points], [point.figure.high for point in points])
    return figures.trace(
        name,
        [point.x for point in points],
        values,
        [
            f"{name}: {interval_text(y, low, high, '')}"
            for y, low, high in zip(values, lows, highs, strict=True)
        ],
        marker={"color": colour, "symbol": "x", "size": 11},
        error_y=figures.error_bars(values, lows, highs),
    )


def _published_name(point: PublishedPoint) -> str:
    return f"published: {point.curve}" if point.curve else "published"


def _sample_text(value: float, figure: FilledFigure) -> str:
    return f"{value:.4g} {figure.layout.unit}".rstrip()


def _hover(curve: MeasuredCurve, figure: FilledFigure) -> list[str]:
    return [
        f"{curve.name}, {x}: {estimate_text(estimate, figure.layout.unit)}"
        for x, estimate in zip(curve.x, curve.estimates, strict=True)
    ]


def _table(figure: FilledFigure) -> Table:
    layout = figure.layout
    rows: list[tuple[str, str, str, object]] = []
    for curve in figure.curves:
        if layout.kind == "samples":
            rows += [
                (curve.name, f"{x:g}", _sample_text(y, figure), 1)
                for x, y in zip(curve.x, curve.y, strict=True)
            ]
        for x, estimate in zip(curve.x, curve.estimates, strict=False):
            value = interval_text(estimate.value, estimate.low, estimate.high, layout.unit)
            rows.append((curve.name, _position(x), value, estimate.n))
        rows += [(curve.name, "–", f"none: {reason}", 0) for reason in curve.absent]
    published: list[tuple[str, str, str, object]] = []
    for point in figure.points:
        source = point.figure
        value = interval_text(point.value, source.low, source.high, layout.unit)
        published.append(
            (_published_name(point), _position(point.x), f"{value} ({source.source})", source.n)
        )
    return table(
        (*thin(rows, _MAX_ROWS), *published),
        text("curve", lambda row: row[0]),
        text(layout.x, lambda row: row[1]),
        text(layout.y, lambda row: row[2]),
        number("n", lambda row: row[3], missing="not given"),
    )


def _position(x: float | str) -> str:
    return x if isinstance(x, str) else f"{x:g}"
