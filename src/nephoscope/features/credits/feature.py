"""Burst credits of CPU, disk and network: the token bucket behind rates over time."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection, Topic

CREDITS = Feature(
    "burst_credits",
    record=".features.credits.records:BurstCredits",
    analyse=".features.credits.result:analyse",
    findings=(".features.credits.findings:RULES",),
    sections=(ReportSection("burst_credits", ".features.credits.section:build", Region.ANSWER),),
    commands=(".features.credits.command:credits_",),
    topic=Topic.CLOUD,
)
