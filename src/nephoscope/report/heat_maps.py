"""A map of squares: rows by columns, each with a figure in it, a colour for how much worse.

A square whose interval holds "no effect" stays empty of colour, one that was not measured is
hatched: neither can be taken for a finding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from nephoscope.core.records import dataclass
from nephoscope.report import figures, palette

WORSE, GAIN = palette.COLOURS[1], palette.COLOURS[0]
"""Vermilion and blue: apart for every kind of colour vision."""

DEEPEST = 4.0
"""A factor of 4 and more has the deepest colour; the scale is logarithmic."""

ROW_HEIGHT = 66
LABEL_WIDTH = 13
_HALF = 0.47
_LIGHT, _DEEP = 0.14, 0.62
"""Opacity: light enough that the page's ink is readable on it, in the dark as well."""


@dataclass(frozen=True, slots=True)
class Square:
    """One square: lines of text, what the pointer shows, and the factor that colours it.

    factor: None where the interval holds 1 or there is none.
    """

    lines: tuple[str, ...]
    hover: str
    factor: float | None


def colour(factor: float | None) -> str:
    """Vermilion above 1, blue below, deeper the farther; clear for None."""
    if factor is None or factor <= 0:
        return "rgba(0,0,0,0)"
    depth = min(1.0, abs(math.log(factor)) / math.log(DEEPEST))
    return palette.translucent(WORSE if factor > 1 else GAIN, _LIGHT + (_DEEP - _LIGHT) * depth)


def grid(
    rows: Sequence[str], columns: Sequence[str], squares: Mapping[tuple[int, int], Square]
) -> dict[str, Any]:
    """The map as a figure; squares: (row, column) -> Square, the others were not measured."""
    shapes: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    points: list[tuple[int, int, str]] = []
    for row in range(len(rows)):
        for column in range(len(columns)):
            square = squares.get((row, column))
            shapes += _square(column, row, square)
            lines = square.lines if square else ("not measured",)
            annotations.append(_written(column, row, lines))
            hover = square.hover if square else f"{rows[row]} with {columns[column]}: not measured"
            points.append((column, row, hover))
    trace = figures.trace(
        "", *zip(*points, strict=True), marker={"size": 34, "opacity": 0, "color": palette.NEUTRAL}
    )
    layout = figures.layout(
        _axis(columns, reverse=False) | {"side": "top"},
        _axis(rows, reverse=True),
        height=80 + ROW_HEIGHT * len(rows),
    )
    layout["showlegend"] = False
    layout["margin"] |= {"t": 8}
    return {"data": [trace], "layout": layout | {"shapes": shapes, "annotations": annotations}}


def _axis(names: Sequence[str], *, reverse: bool) -> dict[str, Any]:
    ends = [-0.5, len(names) - 0.5]
    return figures.named_ticks(
        names,
        ticktext=[wrapped(name) for name in names],
        range=ends[::-1] if reverse else ends,
        tickangle=0,
        showgrid=False,
        showline=False,
        ticks="",
        fixedrange=True,
    )


def wrapped(name: str) -> str:
    """A label over several lines, broken between words."""
    lines: list[str] = []
    for word in name.split():
        if lines and len(lines[-1]) + len(word) < LABEL_WIDTH:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "<br>".join(figures.text(line) for line in lines)


def _square(x: int, y: int, square: Square | None) -> list[dict[str, Any]]:
    box = {
        "type": "rect",
        "x0": x - _HALF,
        "x1": x + _HALF,
        "y0": y - _HALF,
        "y1": y + _HALF,
        "layer": "below",
        "fillcolor": colour(square.factor if square else None),
        "line": {"color": palette.NEUTRAL, "width": 1, "dash": "solid" if square else "dot"},
    }
    return [box] if square else [box, *_hatching(x, y)]


def _hatching(x: int, y: int) -> list[dict[str, Any]]:
    """Slanted lines through a square."""
    line = {"color": palette.NEUTRAL, "width": 0.7}
    lines = []
    for shift in (-0.6, -0.3, 0.0, 0.3, 0.6):
        low, high = max(-_HALF, -_HALF + shift), min(_HALF, _HALF + shift)
        lines.append(
            {
                "type": "line",
                "layer": "below",
                "x0": x + low,
                "y0": y + (low - shift),
                "x1": x + high,
                "y1": y + (high - shift),
                "line": line,
                "opacity": 0.5,
            }
        )
    return lines


def _written(x: int, y: int, lines: Sequence[str]) -> dict[str, Any]:
    first, *rest = (figures.text(line) for line in lines)
    return {
        "x": x,
        "y": y,
        "text": "<br>".join([f"<b>{first}</b>" if rest else first, *rest]),
        "showarrow": False,
        "font": {"size": 11},
    }
