"""Live migration of a guest."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Topic

MIGRATION = Feature(
    "migration",
    needs=("platforms",),
    commands=(".features.migration.command:migration",),
    topic=Topic.MEASURE,
)
