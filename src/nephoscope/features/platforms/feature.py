"""Platforms of lab hosts: system calls, boots, memory and density."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection, Topic

SYSTEM_CALLS = Feature(
    "system_call_overhead",
    record=".features.platforms.records:SystemCallOverhead",
    analyse=".features.platforms.overhead:analyse",
    applies=lambda data: "platform" in data.factors and "sys.calls" in data.benchmarks,
    sections=(
        ReportSection("overhead", ".features.platforms.overhead_section:build", Region.ANSWER),
    ),
)
BOOTS = Feature(
    "boots",
    record=".features.platforms.records:StoredBoots",
    analyse=".features.platforms.stored_boots:analyse",
    applies=lambda data: "host.boot" in data.benchmarks,
    sections=(ReportSection("boots", ".features.platforms.boots_section:build", Region.ANSWER),),
    commands=(".features.platforms.command:platforms",),
    topic=Topic.MEASURE,
)
