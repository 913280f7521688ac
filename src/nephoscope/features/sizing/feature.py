"""Which type, how many, where, for how much."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Topic

SIZING = Feature(
    "sizing",
    topic=Topic.DECIDE,
    needs=("census", "cost", "load", "market", "simulation", "sla"),
    commands=(".features.sizing.command:size",),
)
