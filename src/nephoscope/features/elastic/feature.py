"""Elasticity of autoscalers, and of services of which no autoscaler is seen."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection, Topic

ELASTIC = Feature(
    "elasticity",
    needs=("balance", "load", "sla"),
    record=".features.elastic.records:Elasticity",
    analyse=".features.elastic.result:analyse",
    applies=lambda data: bool(
        {"autoscaler.reference", "autoscaler.observed", "autoscaler.managed"}
        & {load["benchmark"] for load in data.manifest.plan.get("backgrounds") or ()}
    ),
    findings=(".features.elastic.findings:RULES",),
    sections=(ReportSection("elasticity", ".features.elastic.section:build", Region.ANSWER),),
    answer=".features.elastic.section:answer",
    headline=".features.elastic.section:headline",
    commands=(".features.elastic.command:elastic",),
    topic=Topic.MEASURE,
)
GROWTH = Feature(
    "growth",
    needs=("balance", "load"),
    record=".features.elastic.growth_records:ServiceGrowth",
    analyse=".features.elastic.growth:analyse",
    applies=lambda data: (
        data.manifest.plan.get("name") == "growth" and "objective" in data.manifest.labels
    ),
    sections=(ReportSection("growth", ".features.elastic.growth_section:build", Region.ANSWER),),
    answer=".features.elastic.growth_section:answer",
    headline=".features.elastic.growth_section:headline",
)
