"""Effects of the factors that a plan varies."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Region, ReportSection

EXPERIMENT = Feature(
    "experiment",
    record=".features.experiments.records:Experiment",
    analyse=".features.experiments.result:analyse",
    applies=lambda data: data.has_design,
    sections=(ReportSection("experiment", ".features.experiments.section:build", Region.DESIGN),),
    answer=".features.experiments.answer:answer",
)
