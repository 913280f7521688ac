"""Rented machines: what a cloud offers, what is rented, what is left behind."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection, Topic

CLOUD = Feature(
    "cloud",
    needs=("census", "credits", "experiments", "platforms", "studies"),
    record=".features.cloud.distance_records:CloudDistances",
    analyse=".features.cloud.distance_matrix:analyse",
    applies=lambda data: data.manifest.plan.get("name") == "cloud-distances",
    sections=(ReportSection("distances", ".features.cloud.distance_section:build", Region.ANSWER),),
    answer=".features.cloud.distance_section:answer",
    commands=(".features.cloud.commands:cloud",),
    topic=Topic.CLOUD,
    study_census=".features.cloud.study_census:carry_out",
)
