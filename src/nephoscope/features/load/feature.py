"""Load on HTTP servers, and the capacity of one."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection, Topic

_RECORD = ".features.load.result:LoadAnalysis"

GENERATOR = Feature(
    "load_generator",
    record=_RECORD,
    answer=".features.load.section:answer",
    commands=(".features.load.command:load", ".features.load.capacity_command:capacity"),
    topic=Topic.MEASURE,
)
LOAD = Feature(
    "load",
    record=_RECORD,
    analyse=".features.load.result:analyse",
    applies=lambda data: any(name.endswith(".load") for name in data.benchmarks),
    findings=(".features.load.findings:RULES",),
    sections=(ReportSection("load", ".features.load.section:build", Region.DETAIL),),
)
