"""Trials of old runs as histograms."""

from __future__ import annotations

from nephoscope.results.feature import Feature

COMPACTION = Feature(
    "compaction",
    needs=("comparison",),
    commands=(".features.compaction.command:compact",),
)
