"""The analysis of the toy capability."""

from __future__ import annotations

from toy.records import Extremes

from nephoscope.results.run_data import RunData


def analyse(data: RunData) -> Extremes | None:
    """Returns the extremes of all trial values; None without any."""
    values = [value for line in data.metrics for value in line.trial_values]
    return Extremes(min(values), max(values)) if values else None
