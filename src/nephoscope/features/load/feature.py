"""Load on HTTP servers, and the capacity of one."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection

_RECORD = ".features.load.result:Load"

GENERATOR = Feature(
    "load_generator",
    record=_RECORD,
    answer=".features.load.section:answer",
    commands=(".features.load.command:load", ".features.load.capacity_command:capacity"),
)
LOAD = Feature(
    "load",
    record=_RECORD,
    analyse=".features.load.result:analyse",
    applies=lambda data: any(name.endswith(".load") for name in data.benchmarks),
    findings=(".features.load.findings:RULES",),
    sections=(ReportSection("load", ".features.load.section:build", Region.DETAIL),),
)
