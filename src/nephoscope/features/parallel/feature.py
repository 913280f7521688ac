"""Parallel work: steps that wait for their slowest rank."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection

PARALLEL = Feature(
    "parallel_work",
    record=".features.parallel.records:ParallelWork",
    analyse=".features.parallel.result:analyse",
    applies=lambda data: "net.collective" in data.benchmarks,
    findings=(".features.parallel.findings:RULES",),
    sections=(ReportSection("parallel_work", ".features.parallel.section:build", Region.ANSWER),),
)
