"""Simulated autoscaling rules, searched on a trace of load."""

from __future__ import annotations

from nephoscope.results.feature import Feature

SCALING = Feature(
    "scaling",
    needs=("balance", "elastic", "load"),
    subcommands={"simulate": (".features.scaling.command:elastic",)},
)
