"""CPU models by instance type."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection, Topic

CENSUS = Feature(
    "census",
    needs=("studies",),
    record=".features.census.records:Census",
    analyse=".features.census.observations:analyse",
    applies=lambda data: len(data.manifest.targets) > 1,
    sections=(ReportSection("census", ".features.census.section:build", Region.DESIGN),),
    commands=(".features.census.command:census",),
    topic=Topic.CLOUD,
)
