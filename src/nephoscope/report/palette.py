"""Colours that the colour-blind can tell apart, always joined by a dash or a symbol.

Source: Okabe and Ito, Color Universal Design (2008). Their yellow is left out: it vanishes on
white. The page's text, grid and background colours are the style sheet's, not the figure's, so
that one figure is right in light, in dark and on paper.
"""

from __future__ import annotations

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")
NEUTRAL = "#8a8f98"

CAUSES: dict[str, tuple[str, str]] = {
    "unexplained": ("#0072B2", "circle-open"),
    "stolen": ("#D55E00", "diamond"),
    "throttled": ("#E69F00", "square"),
    "preempted": ("#009E73", "triangle-up"),
    "stopped": ("#CC79A7", "x"),
}
"""Colour and symbol of the causes of a scheduling gap; others take the next free pair."""


def style(index: int) -> tuple[str, str, str]:
    """Colour, dash and symbol of the n-th curve; 36 pairs of colour and dash before one repeats."""
    cycle = index // len(COLOURS)
    return (
        COLOURS[index % len(COLOURS)],
        DASHES[(index + cycle) % len(DASHES)],
        SYMBOLS[(index + cycle) % len(SYMBOLS)],
    )


def translucent(colour: str, alpha: float) -> str:
    """The colour as rgba(), for bands."""
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"
