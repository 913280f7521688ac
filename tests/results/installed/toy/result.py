"""The analysis of the toy feature."""

from __future__ import annotations

from nephoscope.results.run_data import RunData
from toy.records import Extremes


def analyse(data: RunData) -> Extremes | None:
    """Returns the extremes of all trial values; None without any."""
    values = [value for line in data.metrics for value in line.trial_values]
    return Extremes(min(values), max(values)) if values else None
