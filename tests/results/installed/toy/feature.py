"""The record of the toy feature."""

from nephoscope.results.feature import Feature, Region, ReportSection

TOY = Feature(
    "toy",
    record="toy.records:Extremes",
    analyse="toy.result:analyse",
    applies=lambda data: bool({"null", "toy.sleep"} & data.benchmarks),
    findings=("toy.findings:RULES",),
    sections=(ReportSection("toy", "toy.section:build", Region.ANSWER),),
    commands=("toy.command:toy",),
)
