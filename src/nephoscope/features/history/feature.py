"""A metric over time."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Topic

HISTORY = Feature(
    "history",
    needs=("compaction", "comparison"),
    commands=(".features.history.command:history",),
    topic=Topic.RESULTS,
)
