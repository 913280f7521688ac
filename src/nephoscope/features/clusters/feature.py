"""Targets that run one benchmark together, as one system: a virtual cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.results.feature import Feature, Region, ReportSection

if TYPE_CHECKING:
    from nephoscope.results.run_data import RunData


def _has_clusters(data: RunData) -> bool:
    """States whether a setting runs on several targets together."""
    settings = data.manifest.settings
    return any(
        setting.get("together") and len(setting.get("targets") or ()) > 1 for setting in settings
    )


CLUSTERS = Feature(
    "clusters",
    record=".features.clusters.result:Clusters",
    analyse=".features.clusters.result:analyse",
    applies=_has_clusters,
    sections=(ReportSection("clusters", ".features.clusters.section:build", Region.ANSWER),),
)
