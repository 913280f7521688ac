"""Analysis of network paths: delay, loss, calls, shaping."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection, Topic

NETWORK = Feature(
    "network",
    record=".features.network.result:NetworkPaths",
    analyse=".features.network.result:analyse",
    applies=lambda data: bool({"net.rtt", "net.throughput", "net.query"} & data.benchmarks),
    findings=(".features.network.findings:RULES",),
    sections=(ReportSection("network", ".features.network.section:build", Region.DETAIL),),
    commands=(".features.network.command:network",),
    topic=Topic.MEASURE,
)
