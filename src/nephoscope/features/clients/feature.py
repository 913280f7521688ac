"""Comparison of clients and servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.results.feature import Feature, Region, ReportSection

if TYPE_CHECKING:
    from nephoscope.results.run_data import RunData


def _has_servers(data: RunData) -> bool:
    """States whether a run names who serves, or who asks, in one of its settings."""
    settings = data.manifest.settings
    return any(setting.get("peer") or setting.get("client") for setting in settings)


CLIENT_SERVER = Feature(
    "client_server",
    record=".features.clients.result:ClientsAndServers",
    analyse=".features.clients.result:analyse",
    applies=_has_servers,
    findings=(".features.clients.findings:RULES",),
    sections=(ReportSection("client_server", ".features.clients.section:build", Region.DESIGN),),
    answer=".features.clients.section:answer",
)
