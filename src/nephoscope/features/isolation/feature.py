"""Interference of neighbours on one host."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection, Topic

ISOLATION = Feature(
    "isolation",
    needs=("cost", "experiments"),
    record=".features.isolation.records:Isolation",
    analyse=".features.isolation.result:analyse",
    applies=lambda data: "resource" in data.factors,
    findings=(".features.isolation.findings:RULES",),
    sections=(ReportSection("isolation", ".features.isolation.section:build", Region.ANSWER),),
    headline=".features.isolation.section:headline",
    answer=".features.isolation.section:answer",
    commands=(".features.isolation.command:isolate",),
    topic=Topic.MEASURE,
)
