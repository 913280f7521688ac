"""Which figures the page's own script draws."""

from __future__ import annotations

from typing import Any

import pytest

from nephoscope.report import figures
from nephoscope.report.drawing import draws

CURVE = figures.Curve("a", (1.0, 2.0, 4.0), (3.0, 2.0, 1.0), hover=("one", "two", "four"))


def figure(log: bool = False) -> dict[str, Any]:
    return figures.lines([CURVE], figures.Axis("x", "ns", log=log), figures.Axis("y", "ns"))


def test_lines_on_linear_and_logarithmic_axes_are_drawn() -> None:
    assert draws(figure())
    assert draws(figure(log=True))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("data", 0, "type"), "violin"),
        (("data", 0, "fill"), "tonexty"),
        (("data", 0, "unheard_of"), 1),
        (("data", 0, "line", "shape"), "spline"),
        (("data", 0, "marker", "symbol"), "star"),
        (("data", 0, "marker", "color"), [1, 2, 3]),
        (("data", 0, "x"), ["2026-01-01", "2026-01-02", "2026-01-03"]),
        (("layout", "xaxis", "type"), "date"),
        (("layout", "xaxis", "tickmode"), "auto"),
        (("layout", "xaxis", "side"), "top"),
        (("layout", "barmode"), "group"),
        (("layout", "unheard_of"), 1),
        (("layout", "shapes"), [{"type": "circle", "x0": 0, "x1": 1, "y0": 0, "y1": 1}]),
        (("layout", "annotations"), [{"x": "2026-01-01", "y": 1, "text": "a"}]),
    ],
)
def test_what_the_script_does_not_know_is_left_to_the_library(
    place: tuple[Any, ...], value: Any
) -> None:
    other = figure()
    inside: Any = other
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    assert not draws(other)
