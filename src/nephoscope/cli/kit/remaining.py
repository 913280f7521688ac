"""The time that a measurement will still take, in words."""

from __future__ import annotations

from nephoscope.core import units
from nephoscope.measure.runs import Status


def left(status: Status) -> str:
    """The time that measuring will still take, as far as it is known; else empty."""
    if status.time_left is None:
        if status.left_s is None:
            return ""
        if status.left_s < 1:
            return "less than 1 s left"
        return f"about {units.format_duration(status.left_s)} left"
    if status.time_left.expected_s < 1:
        return "less than 1 s left" if status.time_left.exact else ""
    words = "about" if status.time_left.exact else "at least"
    return f"{words} {units.format_duration(status.time_left.expected_s)} left"
