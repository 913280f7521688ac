"""Ticks of axes: their distance, and the unit that their labels carry."""

from __future__ import annotations

import pytest

from nephoscope.report.figures import Axis, axis_of


@pytest.mark.parametrize(
    ("unit", "longest", "labels"),
    [
        ("ns", 4e9, ["0 s", "1 s", "2 s", "3 s", "4 s"]),
        ("ns", 140e9, ["0 s", "50 s", "100 s", "150 s"]),
        ("ns", 1800e9, ["0 min", "10 min", "20 min", "30 min"]),
        ("s", 86400, ["0 h", "6 h", "12 h", "18 h", "24 h"]),
        ("ns", 40 * 86400e9, ["0 d", "10 d", "20 d", "30 d", "40 d"]),
        ("ns", 700 * 86400e9, ["0 d", "200 d", "400 d", "600 d", "800 d"]),
        ("ratio", 1.0, ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]),
    ],
)
def test_ticks_of_long_times_are_in_the_units_that_people_use(
    unit: str, longest: float, labels: list[str]
) -> None:
    axis = axis_of(Axis("time", unit, from_zero=True), [0.0, longest])
    assert axis["ticktext"] == labels
    assert len(axis["tickvals"]) == len(labels)
    assert axis["tickvals"][-1] >= longest
