"""Comparison of load balancers."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection, Topic

BALANCE = Feature(
    "balance",
    needs=("load",),
    record=".features.balance.records:Balance",
    analyse=".features.balance.result:analyse",
    applies=lambda data: (
        str(data.manifest.plan.get("name", "")).startswith("balance")
        or bool({"lb.haproxy", "lb.nginx"} & data.benchmarks)
    ),
    findings=(".features.balance.findings:RULES",),
    sections=(ReportSection("balance", ".features.balance.section:build", Region.ANSWER),),
    answer=".features.balance.section:answer",
    headline=".features.balance.section:headline",
    commands=(".features.balance.command:balance",),
    topic=Topic.MEASURE,
)
