"""Comparison of two sides."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Topic

COMPARISON = Feature(
    "comparison",
    needs=("machine",),
    commands=(".features.comparison.command:compare",),
    topic=Topic.RESULTS,
)
