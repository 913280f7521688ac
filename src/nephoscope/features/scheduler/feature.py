"""Inference of the policy by which a hypervisor schedules CPUs."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection, Topic

SCHEDULER = Feature(
    "scheduler",
    record=".features.scheduler.inference.verdict:SchedulerVerdicts",
    analyse=".features.scheduler.result:analyse",
    applies=lambda data: "cpu.gaps" in data.benchmarks,
    sections=(ReportSection("scheduling", ".features.scheduler.section:build", Region.DETAIL),),
    commands=(".features.scheduler.command:scheduler",),
    topic=Topic.MEASURE,
)
