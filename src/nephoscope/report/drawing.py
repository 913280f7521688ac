"""Which figures the page's own script draws; the others need the drawing library.

A page whose figures it all draws carries 20 KB of script; one figure beyond it brings the
library, of 0.6 MB, which then draws all of them. Whatever is not listed here takes the library, so
that a new kind of chart is right before it is small.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from nephoscope.report.blocks import Figure

_DASHES = {"solid", "dash", "dot", "dashdot", "longdash", "longdashdot"}
_SHAPES = {"circle", "square", "diamond", "triangle-up", "cross", "x"}
_SYMBOLS = _SHAPES | {f"{name}-open" for name in _SHAPES}

_EVERY = {"type", "name", "x", "y", "customdata", "hovertemplate", "hoverinfo", "showlegend"}
_EVERY |= {"opacity", "line", "marker", "error_x"}
_TRACE = {
    "scatter": _EVERY
    | {"mode", "fill", "fillcolor", "error_y", "text", "textposition", "textfont", "cliponaxis"},
    "bar": _EVERY | {"orientation", "base", "width"},
}
_LINE = {"color", "dash", "width", "shape"}
_MARKER = {"color", "symbol", "size", "opacity", "line"}
_ERROR = {"type", "symmetric", "array", "arrayminus", "color", "thickness", "width"}
_LAYOUT = {
    "xaxis",
    "yaxis",
    "height",
    "autosize",
    "margin",
    "paper_bgcolor",
    "plot_bgcolor",
    "font",
}
_LAYOUT |= {"hovermode", "hoverlabel", "showlegend", "legend", "dragmode", "barmode"}
_LAYOUT |= {"shapes", "annotations"}
_AXIS = {"type", "title", "range", "tickmode", "tickvals", "ticktext", "automargin", "zeroline"}
_AXIS |= {"showline", "showgrid", "ticks", "fixedrange", "unit"}
_SHAPE = {"type", "x0", "x1", "y0", "y1", "xref", "yref", "layer", "line", "fillcolor"}
_NOTE = {"x", "y", "yref", "yanchor", "text", "showarrow", "font"}


def draws(figure: Figure) -> bool:
    """Returns whether the page's own script draws a figure as the library would."""
    layout = figure["layout"]
    return (
        layout.keys() <= _LAYOUT
        and layout.get("barmode", "stack") in ("stack", "overlay")
        and all(map(_draws_trace, figure["data"]))
        and all(_draws_axis(layout.get(axis, {})) for axis in ("xaxis", "yaxis"))
        and all(map(_draws_shape, layout.get("shapes", ())))
        and all(map(_draws_note, layout.get("annotations", ())))
    )


def _draws_trace(trace: Mapping[str, Any]) -> bool:
    line, marker = trace.get("line", {}), trace.get("marker", {})
    return (
        trace.keys() <= _TRACE.get(trace["type"], set())
        and (trace["type"] != "bar" or trace.get("orientation") == "h")
        and trace.get("fill") in (None, "toself")
        and trace.get("hoverinfo") in (None, "skip", "name")
        and line.keys() <= _LINE
        and line.get("dash", "solid") in _DASHES
        and line.get("shape", "linear") in ("linear", "hv")
        and marker.keys() <= _MARKER
        and set(_listed(marker.get("symbol", "circle"))) <= _SYMBOLS
        and all(isinstance(colour, str) for colour in _listed(marker.get("color", "")))
        and marker.get("line", {}).keys() <= {"color", "width"}
        and not ("error_x" in trace and "error_y" in trace)
        and all(trace.get(axis, {}).keys() <= _ERROR for axis in ("error_x", "error_y"))
        and all(_is_number(value) for axis in "xy" for value in trace[axis])
    )


def _draws_axis(axis: Mapping[str, Any]) -> bool:
    return (
        axis.keys() <= _AXIS
        and axis.get("type", "linear") in ("linear", "log")
        and axis.get("tickmode") == "array"
        and "range" in axis
    )


def _draws_shape(shape: Mapping[str, Any]) -> bool:
    return (
        shape.keys() <= _SHAPE
        and shape["type"] in ("line", "rect")
        and all(_is_number(shape[end]) for end in ("x0", "x1", "y0", "y1"))
    )


def _draws_note(note: Mapping[str, Any]) -> bool:
    return note.keys() <= _NOTE and _is_number(note["x"]) and _is_number(note["y"])


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and math.isfinite(value))
