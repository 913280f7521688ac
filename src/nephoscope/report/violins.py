"""Distributions side by side: every value a point, their density around them, median and quartiles.

The density ends where the values end, and fewer than `FEWEST` values have none: it would be drawn
out of nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from nephoscope.core import units
from nephoscope.core.records import dataclass
from nephoscope.report import figures, heat_maps, palette

FEWEST = 6


@dataclass(frozen=True, slots=True)
class ViolinGroup:
    """Values of one place and one phase."""

    place: str
    phase: str
    values: tuple[float, ...]


def violins(
    places: Sequence[str], phases: Sequence[str], groups: Sequence[ViolinGroup], y: figures.Axis
) -> dict[str, Any]:
    """Returns a violin for each group: places from left to right, one colour per phase."""
    data = [
        _trace(places, at, group, y, first=group is own[0])
        for at, phase in enumerate(phases)
        for own in [[member for member in groups if member.phase == phase]]
        for group in own
    ]
    every = [value for group in groups for value in group.values]
    ticks = figures.named_ticks(
        places,
        ticktext=[f"{heat_maps.wrapped(place)}<br>{_counts(place, groups)}" for place in places],
        tickangle=0,
        range=[-0.6, len(places) - 0.4],
    )
    upright = figures.axis_of(y, every)
    if "range" not in upright:
        upright["range"] = _with_room([*every, 0.0] if y.from_zero else every)
    layout = figures.layout(ticks, upright, height=420)
    layout |= {"violinmode": "group", "violingap": 0.25, "violingroupgap": 0.1}
    return {"data": data, "layout": layout}


def _with_room(values: Sequence[float]) -> list[float]:
    """From below the least to above the greatest: flat outlines would lie on the frame."""
    finite = [value for value in values if math.isfinite(value)] or [0.0]
    room = 0.05 * (max(finite) - min(finite) or abs(max(finite)) or 1.0)
    least = min(finite)
    return [least if least == 0 else least - room, max(finite) + room]


def _counts(place: str, groups: Sequence[ViolinGroup]) -> str:
    """'n 10', or 'n 9 to 10' where the phases of a place have not equally many values."""
    sizes = sorted({len(group.values) for group in groups if group.place == place})
    return f"n {sizes[0]}" if len(sizes) == 1 else f"n {sizes[0]} to {sizes[-1]}"


def _trace(
    places: Sequence[str], at: int, group: ViolinGroup, y: figures.Axis, *, first: bool
) -> dict[str, Any]:
    dense = len(group.values) >= FEWEST
    colour, _, symbol = palette.style(at)
    hover = [
        f"{group.place}, {group.phase}: {units.format_value(value, y.unit)} "
        f"(one of {len(group.values)})"
        for value in group.values
    ]
    style = {
        "type": "violin",
        "legendgroup": figures.text(group.phase),
        # Each to the same width: on one scale the steadiest would make slivers of all others.
        "scalegroup": f"{at} {places.index(group.place)}",
        "showlegend": first,
        "offsetgroup": str(at),
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
    }
    x = [places.index(group.place)] * len(group.values)
    return figures.trace(group.phase, x, group.values, hover, **style)
