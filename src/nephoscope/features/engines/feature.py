"""Engines that read a store: do they give the same results?"""

from __future__ import annotations

from nephoscope.results.feature import Feature, Topic

ENGINES = Feature(
    "engines",
    needs=("census", "compaction", "fleet", "rank", "sla"),
    commands=(".features.engines.command:engine",),
    topic=Topic.RESULTS,
)
