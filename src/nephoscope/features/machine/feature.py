"""What a machine is, what limits it, and what its benchmarks measured."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection

_RECORD = ".results.machine_figures:MachineFigures"

MACHINE = Feature(
    "machine",
    record=_RECORD,
    analyse=".features.machine.result:analyse",
    sections=(ReportSection("machine", ".features.machine.section:build", Region.APPENDIX),),
    answer=".features.machine.scaling_section:answer",
)
LIMITS = Feature(
    "machine_limits",
    record=_RECORD,
    findings=(
        ".features.machine.findings:LIMIT_RULES",
        ".features.machine.interference_findings:RULES",
    ),
)
BENCHMARKS = Feature(
    "machine_benchmarks",
    record=_RECORD,
    sections=tuple(
        ReportSection(name, f".features.machine.{name}_section:build", Region.DETAIL)
        for name in ("cache_ladder", "scaling", "disk", "storage", "loopback")
    ),
)
PROPERTIES = Feature(
    "machine_properties",
    record=_RECORD,
    findings=(
        ".features.machine.slow_findings:RULES",
        ".features.machine.findings:CLOCK_RULES",
        ".features.machine.measured_findings:RULES",
        ".features.machine.findings:PROPERTY_RULES",
    ),
)
