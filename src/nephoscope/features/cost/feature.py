"""Prices, costs of work and savings."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Topic

COST = Feature(
    "cost",
    needs=("census", "simulation"),
    commands=(".features.cost.command:cost",),
    topic=Topic.DECIDE,
)
