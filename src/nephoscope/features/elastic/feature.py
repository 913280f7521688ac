"""Elasticity of autoscalers."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection, Topic

ELASTIC = Feature(
    "elasticity",
    needs=("balance", "load"),
    record=".features.elastic.records:Elasticity",
    analyse=".features.elastic.result:analyse",
    applies=lambda data: bool(
        {"autoscaler.reference", "autoscaler.observed", "autoscaler.managed"}
        & {load["benchmark"] for load in data.manifest.plan.get("backgrounds") or ()}
    ),
    findings=(".features.elastic.findings:RULES",),
    sections=(ReportSection("elasticity", ".features.elastic.section:build", Region.ANSWER),),
    answer=".features.elastic.section:answer",
    commands=(".features.elastic.command:elastic",),
    topic=Topic.MEASURE,
)
