"""Trials of old runs as histograms."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Topic

COMPACTION = Feature(
    "compaction",
    needs=("comparison",),
    commands=(".features.compaction.command:compact",),
    topic=Topic.RESULTS,
)
