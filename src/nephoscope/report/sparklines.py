"""Small drawings in a line of text: of trial values in order, and of curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from nephoscope.report.blocks import Strip, thin

_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH, _HEIGHT, _PAD = 96.0, 22.0, 3.0


def scaled(strip: Strip) -> list[float]:
    """The values on 0 … 1 of a scale that spans the data, and at least ± `band` of the median."""
    values = strip.values
    middle = median(values)
    reach = max(abs(middle) * strip.band, max(abs(value - middle) for value in values))
    return [0.5 if reach == 0 else 0.5 + (value - middle) / reach / 2 for value in values]


def as_text(strip: Strip) -> str:
    """The strip in block characters."""
    return blocks(scaled(strip)) if strip.values else ""


def as_svg_points(strip: Strip) -> list[tuple[float, float]]:
    """The strip as points of a drawing of 96 by 22."""
    heights = scaled(strip) if strip.values else []
    step = (_WIDTH - 2 * _PAD) / max(1, len(heights) - 1)
    return [
        (
            round(_PAD + index * step if len(heights) > 1 else _WIDTH / 2, 1),
            round(_HEIGHT - _PAD - height * (_HEIGHT - 2 * _PAD), 1),
        )
        for index, height in enumerate(heights)
    ]


def blocks(heights: Sequence[float]) -> str:
    """Heights of 0 … 1 as block characters."""
    top = len(_BLOCKS) - 1
    return "".join(_BLOCKS[min(top, max(0, round(height * top)))] for height in heights)


def curve(values: Sequence[float], *, log: bool, width: int) -> str:
    """A curve in at most `width` block characters, from its lowest to its highest value.

    A constant curve lies in the middle, one of zeros at the bottom.
    """
    usable = [v for v in values if math.isfinite(v) and (v > 0 or not log)]
    if not usable:
        return ""
    levels = [math.log(v) if log else v for v in thin(usable, width)]
    low, span = min(levels), max(levels) - min(levels)
    flat = 0.0 if usable[0] == 0 else 0.5
    return blocks([flat if span == 0 else (level - low) / span for level in levels])
