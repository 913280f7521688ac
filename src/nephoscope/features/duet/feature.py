"""Verdict on two commands that ran at the same time on equal CPUs."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection

DUET = Feature(
    "duet",
    record=".features.duet.result:Duets",
    analyse=".features.duet.result:analyse",
    applies=lambda data: "command.duet" in data.benchmarks,
    findings=(".features.duet.findings:RULES",),
    sections=(ReportSection("duet", ".features.duet.section:build", Region.ANSWER),),
    answer=".features.duet.section:answer",
)
