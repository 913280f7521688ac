"""Published experiments and their repetition."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Topic

STUDIES = Feature(
    "studies",
    needs=("scheduler", "sla"),
    commands=(".features.studies.command:study",),
    topic=Topic.EMULATE,
)
