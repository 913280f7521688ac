"""Virtual clusters as a section of the report."""

from __future__ import annotations

from nephoscope.core.model import RunResult
from nephoscope.features.clusters.result import ClusterFigure, Clusters
from nephoscope.report import wording
from nephoscope.report.blocks import Section
from nephoscope.report.columns import estimate, number, table, text


def build(result: RunResult) -> Section | None:
    """Returns a row for each metric of each cluster."""
    clusters = result.part(Clusters)
    if clusters is None:
        return None
    rows = table(
        clusters.figures,
        text("targets", lambda figure: wording.named(figure.targets)),
        text("metric", lambda figure: figure.label),
        text("of the members", _combination_text),
        *estimate("whole system", lambda figure: figure.system),
        number("best over worst member", lambda figure: figure.imbalance),
        caption="Targets that ran at the same time, as one system: the sum of their rates, or the "
        "longest of their times, in each round; medians over rounds.",
    )
    return Section("clusters", "Virtual clusters", (rows,))


def _combination_text(figure: ClusterFigure) -> str:
    return "sum" if figure.combination == "sum" else "longest time"
