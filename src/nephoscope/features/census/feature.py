"""CPU models by instance type."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection

CENSUS = Feature(
    "census",
    needs=("studies",),
    record=".features.census.records:Census",
    analyse=".features.census.sightings:analyse",
    applies=lambda data: len(data.manifest.targets) > 1,
    sections=(ReportSection("census", ".features.census.section:build", Region.DESIGN),),
    commands=(".features.census.command:census",),
)
