"""Distributions side by side: every value a point, their density around them, median and quartiles.

The density ends where the values end, and fewer than `FEWEST` values have none: it would be drawn
out of nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nephoscope import units
from nephoscope.report import figures, palette

FEWEST = 6


@dataclass(frozen=True, slots=True)
class Group:
    """Values of one place and one phase."""

    place: str
    phase: str
    values: tuple[float, ...]


def violins(
    places: Sequence[str], phases: Sequence[str], groups: Sequence[Group], y: figures.Axis
) -> dict[str, Any]:
    """A violin for each group: places from left to right, phases beside each other in a colour."""
    data = [
        _trace(places, at, phase, [one for one in groups if one.phase == phase], y, dense)
        for at, phase in enumerate(phases)
        for dense in (True, False)
        if any(_is_dense(one) is dense for one in groups if one.phase == phase)
    ]
    every = [value for one in groups for value in one.values]
    ticks = {
        "tickmode": "array",
        "tickvals": list(range(len(places))),
        "ticktext": [figures.text(place) for place in places],
        "range": [-0.6, len(places) - 0.4],
        "automargin": True,
    }
    layout = figures.layout(ticks, figures.axis_of(y, every), height=420)
    layout |= {"violinmode": "group", "violingap": 0.25, "violingroupgap": 0.1}
    return {"data": data, "layout": layout}


def _is_dense(one: Group) -> bool:
    return len(one.values) >= FEWEST


def _trace(
    places: Sequence[str],
    at: int,
    phase: str,
    groups: Sequence[Group],
    y: figures.Axis,
    dense: bool,
) -> dict[str, Any]:
    own = [one for one in groups if _is_dense(one) is dense]
    colour, _, symbol = palette.style(at)
    xs = [places.index(one.place) for one in own for _ in one.values]
    values = [value for one in own for value in one.values]
    hover = [
        f"{one.place}, {phase}: {units.format_value(value, y.unit)} (one of {len(one.values)})"
        for one in own
        for value in one.values
    ]
    return {
        "type": "violin",
        "name": figures.text(phase),
        "legendgroup": figures.text(phase),
        # One scale for all: as many values, as much area.
        "scalegroup": "all",
        "showlegend": dense or all(not _is_dense(one) for one in groups),
        "offsetgroup": str(at),
        "x": xs,
        "y": values,
        "line": {"color": colour, "width": 1.2 if dense else 0},
        "fillcolor": palette.translucent(colour, 0.2 if dense else 0.0),
        "spanmode": "hard",
        "scalemode": "width",
        "points": "all",
        "pointpos": 0,
        "jitter": 0.35,
        "marker": {"color": colour, "symbol": symbol, "size": 4, "opacity": 0.75},
        "box": {"visible": dense, "width": 0.25},
        "hoveron": "points",
        "customdata": [figures.text(line) for line in hover],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
