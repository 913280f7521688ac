"""Service level agreements."""

from __future__ import annotations

from nephoscope.results.feature import Feature

SLA = Feature(
    "sla",
    commands=(".features.sla.command:sla",),
)
