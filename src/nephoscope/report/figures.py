"""Figures as plain data for plotly; every text in them is already escaped.

A figure knows nothing of benchmarks: sections choose what to draw, this file how.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from nephoscope.core import units
from nephoscope.core.model import Estimate
from nephoscope.report import palette, wording

CDF_POINTS = 240
"""Points of a drawn CDF: more cannot be told apart on a screen's width."""

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: its title without the unit, the unit of nephoscope.core.units, and its scale.

    title carries what is measured; tick labels carry the unit ('10 µs', '4 KiB').
    """

    title: str
    unit: str
    log: bool = False
    categories: bool = False
    from_zero: bool = False


LOWER_BOUND = "triangle-up-open"
"""Symbol of a point that is a lower bound."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A named line of points with the interval of each point (None where there is none).

    censored: whether a point is a lower bound; empty where none is.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    hover: tuple[str, ...] = ()
    step: bool = False
    censored: tuple[bool, ...] = ()


def text(value: object) -> str:
    """Text for a figure: one line, without the mark-up that the drawing library would obey."""
    return html.escape(wording.clean(value), quote=False)


def curve_of(
    name: str,
    x: Sequence[float],
    estimates: Sequence[Estimate],
    hover: Sequence[str],
    y: Sequence[float] | None = None,
) -> Curve:
    """Returns the curve of estimates with their intervals; y: their values, unless given."""
    return Curve(
        name,
        tuple(x),
        tuple(estimate.value for estimate in estimates) if y is None else tuple(y),
        tuple(estimate.low for estimate in estimates),
        tuple(estimate.high for estimate in estimates),
        tuple(hover),
        censored=tuple(estimate.censored for estimate in estimates),
    )


def trace(
    name: str, x: Sequence[Any], y: Sequence[Any], hover: Iterable[str], **style: Any
) -> dict[str, Any]:
    """Returns points of a figure with the text that the pointer shows; `style` as in plotly."""
    kind = {} if "type" in style else {"type": "scatter", "mode": "markers"}
    return {
        **kind,
        "name": text(name),
        "x": list(x),
        "y": list(y),
        "customdata": [text(line) for line in hover],
        "hovertemplate": "%{customdata}<extra></extra>",
        **style,
    }


def named_ticks(labels: Sequence[str], **axis: Any) -> dict[str, Any]:
    """Returns an axis with these labels at 0, 1, 2, …; `axis` as in plotly."""
    return {
        "tickmode": "array",
        "tickvals": list(range(len(labels))),
        "ticktext": [text(label) for label in labels],
        "automargin": True,
        **axis,
    }


def log_ticks(low: float, high: float, unit: str) -> tuple[list[float], list[str]]:
    """Positions and labels of at most about eight ticks: powers of two of bytes, else of ten."""
    base, steps = (2.0, (1, 2, 3, 4, 6)) if unit == "bytes" else (10.0, (1, 2, 3))
    first = math.floor(math.log(low, base) + 1e-9)
    last = math.ceil(math.log(high, base) - 1e-9)
    step = next((s for s in steps if (last - first) / s <= 8), steps[-1])
    places = [base**power for power in range(first, last + 1, step)]
    inside = sum(low / 1.1 <= place <= high * 1.1 for place in places)
    if inside < 3 and unit != "bytes":  # too few decades: 1-2-5 in between
        places = [base**p * m for p in range(first, last + 1) for m in (1, 2, 5)]
        places = [place for place in places if low / 1.5 <= place <= high * 1.5]
    return places, [_short(place, unit) for place in places]


def _short(value: float, unit: str) -> str:
    divisor, label = units.scale_of(unit, value * (1 + 1e-9))
    return f"{value / divisor:.4g} {label}".strip()


def axis_of(axis: Axis, values: Sequence[float]) -> dict[str, Any]:
    """An axis that holds the values, with ticks that carry the unit."""
    finite = [value for value in values if math.isfinite(value) and (value > 0 or not axis.log)]
    title = {"text": text(axis.title), "font": {"size": 13}, "standoff": 12}
    # The unit is for whoever saves the numbers; neither script that draws reads it.
    out: dict[str, Any] = {"title": title, "automargin": True, "unit": axis.unit}
    if axis.log:
        out["type"] = "log"
        if finite:
            places, labels = log_ticks(min(finite), max(finite), axis.unit)
            pad = 0.04 * max(math.log10(max(finite) / min(finite)), 0.5)
            out |= {"tickmode": "array", "tickvals": places, "ticktext": labels}
            out["range"] = [math.log10(min(finite)) - pad, math.log10(max(finite)) + pad]
    elif axis.categories:
        out |= {"type": "category"}
    elif finite:
        ends = [*finite, 0.0] if axis.from_zero else finite
        top, bottom = max(ends), min(ends)
        out |= _linear_ticks(bottom, top, axis)
    return out


_SECOND = {"ns": 1e9, "s": 1.0}
_LONG_TIMES = (
    (60.0, "min", (1, 2, 5, 10, 20, 30)),
    (3600.0, "h", (1, 2, 3, 6, 12)),
    (86400.0, "d", (1, 2, 5, 10)),
)
"""Units of time that are not decimal: seconds, symbol, steps of ticks in it."""


def _time_scale(raw: float, unit: str) -> tuple[float, str, tuple[int, ...]] | None:
    """Returns size, symbol and steps of the unit of time for ticks this far apart; None where
    seconds or a part of them, or no time, are on the axis."""
    second = _SECOND.get(unit)
    if second is None or raw <= 30 * second:
        return None
    size, symbol, factors = next(
        (each for each in _LONG_TIMES if raw <= each[0] * each[2][-1] * second), _LONG_TIMES[-1]
    )
    return size * second, symbol, factors


def _linear_ticks(low: float, high: float, axis: Axis) -> dict[str, Any]:
    span = (high - low) or abs(high) or 1.0
    raw = span / 5
    of_time = _time_scale(raw, axis.unit)
    unit_size = of_time[0] if of_time else 10 ** math.floor(math.log10(raw))
    factors = of_time[2] if of_time else (1, 2, 5, 10)
    # Beyond the last factor, of days, the steps are decimal again.
    while raw > factors[-1] * unit_size * (1 + 1e-9):
        unit_size *= 10
    step = unit_size * next(each for each in factors if raw <= each * unit_size * (1 + 1e-9))
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    places = [index * step for index in range(first, last + 1)]
    if of_time:
        labels = [f"{place / of_time[0]:.6g} {of_time[1]}" for place in places]
    elif axis.unit in ("count", "none"):
        labels = [f"{place:,.10g}" if abs(place) >= 1e6 else f"{place:.6g}" for place in places]
    else:
        divisor, label = units.scale_of(axis.unit, max(abs(places[0]), abs(places[-1])))
        labels = [f"{place / divisor:.6g} {label}".strip() for place in places]
    pad = 0.03 * span
    lower = 0.0 if axis.from_zero and low == 0 else low - pad
    return {
        "tickmode": "array",
        "tickvals": places,
        "ticktext": labels,
        "range": [lower, high + pad],
    }


def layout(x: dict[str, Any], y: dict[str, Any], *, height: int = 380) -> dict[str, Any]:
    """The layout that all figures share; colours of text and grid are the style sheet's."""
    return {
        "xaxis": {"zeroline": False, "showline": True, "ticks": "outside", "fixedrange": False} | x,
        "yaxis": {"zeroline": False, "ticks": ""} | y,
        "height": height,
        "autosize": True,
        "margin": {"l": 8, "r": 16, "t": 28, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": _FONT, "size": 13},
        "hovermode": "closest",
        "hoverlabel": {"align": "left", "font": {"family": _FONT}},
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "dragmode": False,
    }


def lines(
    curves: Sequence[Curve],
    x: Axis,
    y: Axis,
    *,
    bands: bool = False,
    markers: bool = True,
    height: int = 400,
    reach: Sequence[float] = (),
) -> dict[str, Any]:
    """Curves with their intervals as bands, or as bars on each point.

    reach: further values that the x axis has to hold.
    """
    data: list[dict[str, Any]] = []
    for index, curve in enumerate(curves):
        colour, dash, symbol = palette.style(index)
        if bands and curve.low:
            data.append(_band(curve, colour))
        drawn = trace(
            curve.name,
            curve.x,
            curve.y,
            curve.hover,
            mode="lines+markers" if markers else "lines",
            line={"color": colour, "dash": dash, "width": 2},
            marker={"symbol": symbol, "size": 6},
        )
        if any(curve.censored):
            drawn["marker"] = {
                "symbol": [
                    LOWER_BOUND if is_censored else symbol for is_censored in curve.censored
                ],
                "size": [12 if is_censored else 6 for is_censored in curve.censored],
            }
        if curve.step:
            drawn["line"]["shape"] = "hv"
        if curve.low and not bands:
            drawn["error_y"] = error_bars(curve.y, curve.low, curve.high)
        data.append(drawn)
    every_x = [*(value for curve in curves for value in curve.x), *reach]
    every_y = [
        value
        for curve in curves
        for value in (*curve.y, *curve.low, *curve.high)
        if value is not None
    ]
    out = layout(axis_of(x, every_x), axis_of(y, every_y), height=height)
    out["showlegend"] = len(curves) > 1
    return {"data": data, "layout": out}


def _band(curve: Curve, colour: str) -> dict[str, Any]:
    known = [
        (x, low, high)
        for x, low, high in zip(curve.x, curve.low, curve.high, strict=True)
        if low is not None and high is not None
    ]
    x = [x for x, _, _ in known] + [x for x, _, _ in reversed(known)]
    y = [low for _, low, _ in known] + [high for _, _, high in reversed(known)]
    return area(x, y, palette.translucent(colour, 0.18), {"width": 0})


def area(
    x: Sequence[float | None], y: Sequence[float | None], colour: str, line: dict[str, Any]
) -> dict[str, Any]:
    """Returns filled outlines that the pointer passes over; None separates two of them."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "fill": "toself",
        "fillcolor": colour,
        "line": line,
        "hoverinfo": "skip",
        "showlegend": False,
    }


def error_bars(
    values: Sequence[float], lows: Sequence[float | None], highs: Sequence[float | None]
) -> dict[str, Any]:
    """Returns the intervals of values as error bars, none on a side that does not exist."""
    pairs = list(zip(values, lows, highs, strict=True))
    return {
        "type": "data",
        "symmetric": False,
        "array": [0 if high is None else high - y for y, _, high in pairs],
        "arrayminus": [0 if low is None else y - low for y, low, _ in pairs],
        "thickness": 1.5,
        "width": 5,
    }


def interval_bars(estimates: Sequence[Estimate]) -> dict[str, Any]:
    """Returns the intervals of estimates as error bars."""
    values = [estimate.value for estimate in estimates]
    return error_bars(
        values, [estimate.low for estimate in estimates], [estimate.high for estimate in estimates]
    )


def ends_of(estimates: Sequence[Estimate]) -> list[float]:
    """Returns values and bounds of estimates, all of which an axis has to hold."""
    return [
        end
        for estimate in estimates
        for end in (estimate.value, estimate.low, estimate.high)
        if end is not None
    ]


def dots(
    rows: Sequence[tuple[str, Estimate]], x: Axis, *, reach: Sequence[float] = ()
) -> dict[str, Any]:
    """One dot with its interval for each named estimate. reach: further values of the axis."""
    colour, _, symbol = palette.style(0)
    names, estimates = [name for name, _ in rows], [estimate for _, estimate in rows]
    drawn = trace(
        "",
        [estimate.value for estimate in estimates],
        range(len(rows)),
        [f"{name}: {wording.estimate_text(estimate)}" for name, estimate in rows],
        marker={"color": colour, "symbol": symbol, "size": 9},
        error_x=interval_bars(estimates) | {"color": colour},
    )
    y_axis = named_ticks(names, range=[len(names) - 0.5, -0.5])
    out = layout(axis_of(x, [*ends_of(estimates), *reach]), y_axis, height=90 + 34 * len(names))
    out["showlegend"] = False
    return {"data": [drawn], "layout": out}


def stacked(
    names: Sequence[str], parts: Sequence[tuple[str, Sequence[float]]], x: Axis
) -> dict[str, Any]:
    """A horizontal bar for each name, made of parts: (name of the part, its value in each bar)."""
    places = list(range(len(names)))
    data = []
    for index, (part, values) in enumerate(parts):
        colour, _, _ = palette.style(index)
        hover = [
            f"{name}, {part}: {units.format_value(value, x.unit)}"
            for name, value in zip(names, values, strict=True)
        ]
        bars = {"type": "bar", "orientation": "h", "marker": {"color": colour}}
        data.append(trace(part, values, places, hover, **bars))
    totals = [sum(values[place] for _, values in parts) for place in places]
    y_axis = named_ticks(names, range=[len(names) - 0.5, -0.5])
    whole = axis_of(Axis(x.title, x.unit, from_zero=True), [0.0, *totals])
    out = layout(whole, y_axis, height=110 + 34 * len(names))
    out["barmode"] = "stack"
    return {"data": data, "layout": out}


def vertical(figure_layout: dict[str, Any], x: float | str, label: str, *, log: bool) -> None:
    """Adds a dotted upright line with a label above the plot. x: a text on an axis of dates."""
    place = math.log10(float(x)) if log else x
    figure_layout.setdefault("shapes", []).append(
        {
            "type": "line",
            # Shapes take values of a logarithmic axis as they are, annotations their logarithm.
            "x0": x,
            "x1": x,
            "yref": "paper",
            "y0": 0,
            "y1": 1,
            "layer": "below",
            "line": {"color": palette.NEUTRAL, "width": 1, "dash": "dot"},
        }
    )
    figure_layout.setdefault("annotations", []).append(
        {
            "x": place,
            "yref": "paper",
            "y": 1,
            "yanchor": "bottom",
            "text": text(label),
            "showarrow": False,
            "font": {"size": 11},
        }
    )


def horizontal(y: float) -> dict[str, Any]:
    """A thin level line across the plot, between rows."""
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": y,
        "y1": y,
        "layer": "below",
        "line": {"color": palette.NEUTRAL, "width": 1},
    }
