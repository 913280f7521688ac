"""What every report has."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection

EXECUTION = Feature(
    "execution", record=".results.execution:ExecutionSummary", analyse=".results.execution:analyse"
)
COUNTERS = Feature(
    "counters", record=".results.counters:TrialCounters", analyse=".results.counters:analyse"
)
REPORT = Feature(
    "report",
    sections=(
        ReportSection("summary", ".report.summary:build", Region.FIRST),
        ReportSection("findings", ".report.sections.findings:build", Region.FIRST),
        ReportSection("stability", ".report.trial_chart:build", Region.FIRST),
        ReportSection("results", ".report.sections.results:build", Region.RESULTS),
        ReportSection("other_benchmarks", ".report.sections.other_benchmarks:build", Region.DETAIL),
        ReportSection("execution", ".report.sections.execution:build", Region.APPENDIX),
        ReportSection("method", ".report.sections.method:build", Region.APPENDIX),
        ReportSection("excluded_trials", ".report.sections.excluded_trials:build", Region.APPENDIX),
    ),
)
