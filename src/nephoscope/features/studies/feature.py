"""Published experiments and their repetition."""

from __future__ import annotations

from nephoscope.results.feature import Feature

STUDIES = Feature(
    "studies",
    needs=("scheduler", "sla"),
    commands=(".features.studies.command:study",),
)
