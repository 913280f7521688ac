"""Bursts of traffic and the energy of a mobile radio."""

from __future__ import annotations

from nephoscope.results.feature import Feature

TRAFFIC = Feature(
    "traffic",
    subcommands={"network": (".features.traffic.command:traffic",)},
)
