"""Plans that are repeated on a schedule."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Topic

WATCH = Feature(
    "watch",
    needs=("compaction",),
    commands=(".features.watch.command:watch",),
    topic=Topic.MEASURE,
)
