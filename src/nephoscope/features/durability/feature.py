"""Durability of stored objects."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection

DURABILITY = Feature(
    "durability",
    record=".features.durability.result:Durability",
    analyse=".features.durability.result:analyse",
    applies=lambda data: "storage.durability" in data.benchmarks,
    findings=(".features.durability.findings:RULES",),
    sections=(ReportSection("durability", ".features.durability.section:build", Region.ANSWER),),
    answer=".features.durability.section:answer",
)
