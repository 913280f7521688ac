"""Classes of applications and predictions of their performance."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Topic

ADVISE = Feature(
    "advise",
    needs=("census", "market"),
    commands=(".features.advise.command:advise",),
    topic=Topic.DECIDE,
)
