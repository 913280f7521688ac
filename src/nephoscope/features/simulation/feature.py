"""Simulated sites and users, schedulers and selections of instances."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection, Topic

SIMULATION = Feature(
    "simulation",
    record=".features.simulation.records:Simulation",
    analyse=".features.simulation.result:analyse",
    applies=lambda data: any(name.startswith("sim.") for name in data.benchmarks),
    findings=(".features.simulation.findings:RULES",),
    sections=tuple(
        ReportSection(name, f".features.simulation.{module}_section:build", Region.ANSWER)
        for name, module in (
            ("placement", "placement"),
            ("deployments", "deployment"),
            ("simulated_scheduler", "scheduler"),
            ("saving", "saving"),
        )
    ),
    answer=".features.simulation.placement_section:answer",
    commands=(".features.simulation.command:simulate",),
    topic=Topic.EMULATE,
)
