"""Service level agreements."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Topic

SLA = Feature(
    "sla",
    commands=(".features.sla.command:sla",),
    topic=Topic.DECIDE,
)
