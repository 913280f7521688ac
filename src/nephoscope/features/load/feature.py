"""Load on HTTP servers, and the capacity of one."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection

GENERATOR = Feature(
    "load_generator",
    commands=(".features.load.command:load", ".features.load.capacity_command:capacity"),
)
LOAD = Feature(
    "load",
    record=".features.load.result:Load",
    analyse=".features.load.result:analyse",
    applies=lambda data: any(name.endswith(".load") for name in data.benchmarks),
    findings=(".features.load.findings:RULES",),
    sections=(ReportSection("load", ".features.load.section:build", Region.DETAIL),),
    answer=".features.load.section:answer",
)
