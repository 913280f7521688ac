"""Targets of a fleet that differ from the others."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection, Topic

FLEET = Feature(
    "fleet",
    record=".features.fleet.result:FleetCheck",
    analyse=".features.fleet.result:analyse",
    applies=lambda data: "fleet" in data.manifest.stored,
    sections=(ReportSection("fleet", ".features.fleet.section:build", Region.ANSWER),),
    answer=".features.fleet.section:answer",
    commands=(".features.fleet.command:fleet",),
    topic=Topic.CLOUD,
)
