"""Zones by name become hours, on a fixed day."""

from __future__ import annotations

from typing import Any

import pytest

from nephoscope.catalog.scenarios.time_zones import resolve
from nephoscope.core.errors import PlanError


def resolved(zone: Any, **more: Any) -> Any:
    values: dict[str, Any] = {"user_bases": {"a": {"zone": zone}}, **more}
    resolve(values, lambda loc: f"{'.'.join(map(str, loc))}: ")
    assert "date" not in values
    return values["user_bases"]["a"]["zone"]


@pytest.mark.parametrize(
    ("zone", "date", "hours"),
    [
        # Winter in the north by default; half hours; the other side of the date line.
        ("Europe/Berlin", None, 1.0),
        ("Europe/Berlin", "2026-07-01", 2.0),
        ("America/New_York", None, -5.0),
        ("Asia/Kolkata", None, 5.5),
        ("Pacific/Kiritimati", None, 14.0),
    ],
)
def test_a_name_becomes_hours(zone: str, date: str | None, hours: float) -> None:
    assert resolved(zone, **({"date": date} if date else {})) == hours


@pytest.mark.parametrize("zone", [-6, 5.5, "UTC", "UTC+5:30", "UTC-6"])
def test_hours_are_left_to_the_simulator(zone: Any) -> None:
    assert resolved(zone) == zone


def test_an_unknown_zone_is_one_sentence_with_a_near_name() -> None:
    with pytest.raises(PlanError) as caught:
        resolved("Europe/Berlinn")
    assert str(caught.value).startswith("user_bases.a.zone: there is no time zone")
    assert "did you mean 'Europe/Berlin'?" in str(caught.value)


def test_a_date_that_is_none_is_told() -> None:
    with pytest.raises(PlanError, match="'tomorrow' is no date"):
        resolved("Europe/Berlin", date="tomorrow")
