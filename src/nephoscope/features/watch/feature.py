"""Plans that are repeated on a schedule."""

from __future__ import annotations

from nephoscope.results.feature import Feature

WATCH = Feature(
    "watch",
    needs=("compaction",),
    commands=(".features.watch.command:watch",),
)
