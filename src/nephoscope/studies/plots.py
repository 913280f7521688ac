"""Pictures of a study as charts of the report: ours as curves or bars, theirs as single marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nephoscope.report import figures, palette
from nephoscope.report.blocks import Cell, Chart, Column, Table, thin
from nephoscope.studies.drawing import Drawn, Picture, Theirs
from nephoscope.studies.filling import told

_THEIRS = "#d62728"
_MOST_ROWS = 60


def chart(picture: Picture) -> Chart:
    """One figure with the table of its data."""
    drawing = picture.drawing
    build = {"samples": _samples, "bars": _bars, "lines": _lines}[drawing.kind]
    figure = build(picture)
    names = [curve.name for curve in picture.curves]
    for name in dict.fromkeys(point.curve for point in picture.points):
        colour = palette.style(names.index(name))[0] if name in names else _THEIRS
        figure["data"].append(_marks([one for one in picture.points if one.curve == name], colour))
    figure["layout"]["showlegend"] = True
    theirs = " Their numbers stand as crosses." if picture.points else ""
    return Chart(
        f"{picture.part}-{drawing.id}",
        f"{drawing.figure}: {drawing.title}",
        figure,
        _table(picture),
        f"{drawing.why}{theirs}",
    )


def _y(picture: Picture) -> str:
    drawing = picture.drawing
    return f"{drawing.y} ({drawing.unit})" if drawing.unit else drawing.y


def _every_y(picture: Picture) -> list[float]:
    found = [value for curve in picture.curves for value in curve.y]
    for curve in picture.curves:
        ends = (end for one in curve.estimates for end in (one.low, one.high))
        found += [end for end in ends if end is not None]
    for point in picture.points:
        found += [v for v in (point.value, point.low, point.high) if v is not None]
    return found


def _samples(picture: Picture) -> dict[str, Any]:
    data = []
    for index, curve in enumerate(picture.curves):
        colour, _, symbol = palette.style(index)
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": figures.text(curve.name),
                "x": list(curve.x),
                "y": list(curve.y),
                "marker": {"color": colour, "symbol": symbol, "size": 7},
                "customdata": [
                    figures.text(f"{curve.name}, sample {x:g}: {told_value(y, picture)}")
                    for x, y in zip(curve.x, curve.y, strict=True)
                ],
                "hovertemplate": "%{customdata}<extra></extra>",
            }
        )
    every = [float(x) for curve in picture.curves for x in curve.x]
    x_axis = figures.axis_of(figures.Axis(picture.drawing.x, "count"), every)
    y_axis = figures.axis_of(figures.Axis(_y(picture), "none"), _every_y(picture))
    return {"data": data, "layout": figures.layout(x_axis, y_axis, height=360)}


def _lines(picture: Picture) -> dict[str, Any]:
    curves = [
        figures.Curve(
            curve.name,
            tuple(float(x) for x in curve.x),
            curve.y,
            tuple(one.low for one in curve.estimates),
            tuple(one.high for one in curve.estimates),
            _hover(curve, picture),
        )
        for curve in picture.curves
    ]
    x_axis = figures.Axis(picture.drawing.x, "count")
    figure = figures.lines(curves, x_axis, figures.Axis(_y(picture), "none", from_zero=True))
    figure["layout"]["yaxis"] |= figures.axis_of(
        figures.Axis(_y(picture), "none", from_zero=True), _every_y(picture)
    )
    return figure


def _bars(picture: Picture) -> dict[str, Any]:
    data = []
    for index, curve in enumerate(picture.curves):
        colour, _, _ = palette.style(index)
        lows = [one.value if one.low is None else one.low for one in curve.estimates]
        highs = [one.value if one.high is None else one.high for one in curve.estimates]
        data.append(
            {
                "type": "bar",
                "name": figures.text(curve.name),
                "x": [str(x) for x in curve.x],
                "y": list(curve.y),
                "marker": {"color": palette.translucent(colour, 0.75)},
                "error_y": {
                    "type": "data",
                    "symmetric": False,
                    "array": [high - y for y, high in zip(curve.y, highs, strict=True)],
                    "arrayminus": [y - low for y, low in zip(curve.y, lows, strict=True)],
                    "thickness": 1.5,
                    "width": 5,
                },
                "customdata": list(_hover(curve, picture)),
                "hovertemplate": "%{customdata}<extra></extra>",
            }
        )
    every = [str(x) for curve in picture.curves for x in curve.x]
    places = list(dict.fromkeys([*map(str, picture.drawing.levels.values()), *every]))
    x_axis = figures.axis_of(figures.Axis(picture.drawing.x, "none", categories=True), [])
    x_axis |= {"categoryorder": "array", "categoryarray": places}
    y_axis = figures.axis_of(figures.Axis(_y(picture), "none", from_zero=True), _every_y(picture))
    layout = figures.layout(x_axis, y_axis, height=360)
    layout["barmode"] = "group"
    return {"data": data, "layout": layout}


def _marks(points: Sequence[Theirs], colour: str) -> dict[str, Any]:
    """Their numbers beside one curve, or beside none: crosses, with an interval where there is."""
    first = points[0]
    name = f"theirs{': ' + first.curve if first.curve else ''} ({first.source})"
    ends = [
        (one.value if one.low is None else one.low, one.value if one.high is None else one.high)
        for one in points
    ]
    texts = (told(one.value, one.low, one.high, "") for one in points)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": figures.text(name),
        "x": [one.x for one in points],
        "y": [one.value for one in points],
        "marker": {"color": colour, "symbol": "x", "size": 11},
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [high - one.value for one, (_, high) in zip(points, ends, strict=True)],
            "arrayminus": [one.value - low for one, (low, _) in zip(points, ends, strict=True)],
        },
        "customdata": [figures.text(f"{name}: {text}") for text in texts],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def told_value(value: float, picture: Picture) -> str:
    """A value without an interval, in the figure's unit."""
    return f"{value:.4g} {picture.drawing.unit}".rstrip()


def _hover(curve: Drawn, picture: Picture) -> tuple[str, ...]:
    unit = picture.drawing.unit
    return tuple(
        f"{curve.name}, {x}: {told(one.value, one.low, one.high, unit)}, n {one.n}"
        for x, one in zip(curve.x, curve.estimates, strict=True)
    )


def _table(picture: Picture) -> Table:
    drawing = picture.drawing
    rows: list[tuple[Cell, ...]] = []
    for curve in picture.curves:
        if drawing.kind == "samples":
            samples = zip(curve.x, curve.y, strict=True)
            rows += [(curve.name, f"{x:g}", told_value(y, picture), "1") for x, y in samples]
        else:
            rows += [
                (
                    curve.name,
                    _place(x),
                    told(one.value, one.low, one.high, drawing.unit),
                    str(one.n),
                )
                for x, one in zip(curve.x, curve.estimates, strict=True)
            ]
        rows += [(curve.name, "–", f"none: {reason}", "0") for reason in curve.absent]
    theirs: Sequence[tuple[Cell, ...]] = [
        (
            f"theirs{': ' + one.curve if one.curve else ''}",
            _place(one.x),
            f"{told(one.value, one.low, one.high, drawing.unit)} ({one.source})",
            "not given" if one.n is None else str(one.n),
        )
        for one in picture.points
    ]
    head = (Column("curve"), Column(drawing.x), Column(drawing.y), Column("n", True))
    return Table(head, (*thin(rows, _MOST_ROWS), *theirs))


def _place(x: float | str) -> str:
    return x if isinstance(x, str) else f"{x:g}"
