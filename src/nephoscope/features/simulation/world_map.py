"""The map: where users and sites are, and how long users wait; drawn without any network.

Longitude and latitude are drawn as they are (plate carrée), on the outlines of the land in
static/coastline.json.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

from nephoscope.core import units
from nephoscope.core.grouping import group_by
from nephoscope.core.records import dataclass
from nephoscope.report import figures, palette

FAST, SLOW = palette.COLOURS[0], palette.COLOURS[1]
"""Blue and vermilion: apart for every kind of colour vision."""

_MIDDLE = "#e8e3d9"
_LAND = palette.translucent(palette.NEUTRAL, 0.22)
_SOUTH, _NORTH = -58, 84
_LEAST_DOT, _MOST_DOT = 13, 40


@dataclass(frozen=True, slots=True)
class Dot:
    """Somewhere with users. size: what the area shows, None where unknown; value: the colour,
    a mean response time in ns; None where nobody was served.
    """

    name: str
    latitude: float
    longitude: float
    size: float | None
    value: float | None
    hover: str


@dataclass(frozen=True, slots=True)
class MapMarker:
    """A site, or a cache (minor)."""

    name: str
    latitude: float
    longitude: float
    hover: str
    minor: bool = False


@lru_cache(maxsize=1)
def land() -> tuple[list[float | None], list[float | None]]:
    """Longitudes and latitudes of all outlines, None between two of them."""
    text = resources.files("nephoscope.report").joinpath("static", "coastline.json").read_text()
    x: list[float | None] = []
    y: list[float | None] = []
    for ring in json.loads(text):
        x += [*(value / 10 for value in ring[::2]), None]
        y += [*(value / 10 for value in ring[1::2]), None]
    return x, y


def figure(
    dots: Sequence[Dot], marks: Sequence[MapMarker], *, middle: float | None
) -> dict[str, Any]:
    """The map of mean response times in ns.

    middle: where the colour turns from blue to vermilion, such as an objective.
    """
    ground = figures.area(*land(), _LAND, {"color": palette.NEUTRAL, "width": 0.5})
    places = [(dot.longitude, dot.latitude) for dot in dots]
    places += [(mark.longitude, mark.latitude) for mark in marks]
    data = [ground, *_dots(dots, middle)]
    for name, minor in (("caches", True), ("sites", False)):
        data += _marks(name, [mark for mark in marks if mark.minor is minor])
    return {"data": data, "layout": _layout(places)}


def _layout(places: Sequence[tuple[float, float]]) -> dict[str, Any]:
    bare = {"visible": False, "showgrid": False, "showline": False, "ticks": ""}
    south = min([_SOUTH, *(latitude - 6 for _, latitude in places)])
    layout = figures.layout(
        bare | {"range": [-180, 180], "constrain": "domain"},
        bare | {"range": [south, _NORTH], "scaleanchor": "x", "constrain": "domain"},
        height=460,
    )
    layout["legend"] |= {"itemsizing": "constant"}
    layout["margin"] |= {"t": 34}
    return layout


def _dots(dots: Sequence[Dot], middle: float | None) -> list[dict[str, Any]]:
    known = [dot for dot in dots if dot.value is not None]
    largest = max((dot.size for dot in dots if dot.size), default=0.0)
    out = []
    if known:
        values = [dot.value for dot in known if dot.value is not None]
        out.append(
            _trace(
                "users",
                known,
                marker=_marker(known, largest) | {"color": values} | _scale(values, middle),
            )
        )
    nobody = [dot for dot in dots if dot.value is None]
    if nobody:
        marker = _marker(nobody, largest) | {"color": palette.NEUTRAL, "symbol": "x"}
        out.append(_trace("users without an answer", nobody, marker=marker))
    return out


def _trace(name: str, places: Sequence[Dot | MapMarker], **style: Any) -> dict[str, Any]:
    x, y = [place.longitude for place in places], [place.latitude for place in places]
    return figures.trace(name, x, y, [place.hover for place in places], **style)


def _marker(dots: Sequence[Dot], largest: float) -> dict[str, Any]:
    # Area by users: the eye adds areas up.
    reach = _MOST_DOT - _LEAST_DOT
    sizes = [
        round(_LEAST_DOT + reach * math.sqrt((dot.size or 0) / largest), 1) if largest else 18
        for dot in dots
    ]
    return {"size": sizes, "opacity": 0.9, "line": {"width": 1, "color": "#5c6470"}}


def _scale(values: Sequence[float], middle: float | None) -> dict[str, Any]:
    """Blue for little, vermilion for much; pale at the middle, which is that of the range if
    nothing else."""
    low, high = min(values), max(values)
    midpoint = middle
    if midpoint is None:
        midpoint = (low + high) / 2
    else:
        # The objective is pale; on either side the farthest value has the full colour.
        low, high = min(low, 0.0), max(high, 1.5 * midpoint)
    span = (high - low) or abs(high) or 1.0
    at = min(0.98, max(0.02, (midpoint - low) / span))
    ticks = sorted({low, midpoint, high})
    divisor, label = units.scale_of("ns", high)
    return {
        "colorscale": [[0.0, FAST], [at, _MIDDLE], [1.0, SLOW]],
        "cmin": low,
        "cmax": low + span,
        "showscale": True,
        "colorbar": {
            "thickness": 12,
            "len": 0.7,
            "outlinewidth": 0,
            "tickmode": "array",
            "tickvals": ticks,
            "ticktext": [f"{units.format_number(tick / divisor)} {label}" for tick in ticks],
        },
    }


def _marks(name: str, marks: Sequence[MapMarker]) -> list[dict[str, Any]]:
    if not marks:
        return []
    minor = marks[0].minor
    marker = {
        "symbol": "square" if minor else "diamond",
        "size": 8 if minor else 12,
        "color": palette.COLOURS[3 if minor else 2],
        "line": {"width": 1.5, "color": "#ffffff"},
    }
    # Beside the circle of the users who are there.
    labels = [f"\u2003\u2002<b>{figures.text(mark.name)}</b>" for mark in marks]
    text = {"text": labels, "textposition": "middle right", "textfont": {"size": 12}}
    return [_trace(name, marks, mode="markers+text", marker=marker, **text)]


def apart(places: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """The same places, those that are at one point spread side by side so that each is seen."""
    groups = group_by(places, lambda name: tuple(round(angle, 1) for angle in places[name]))
    out = {}
    for names in groups.values():
        for index, name in enumerate(names):
            latitude, longitude = places[name]
            out[name] = (latitude, longitude + 5.0 * (index - (len(names) - 1) / 2))
    return out
