"""Tariffs and utilities."""

from __future__ import annotations

from nephoscope.results.feature import Feature

PRICING = Feature(
    "pricing",
    needs=("cost",),
    subcommands={
        "cost": (".features.pricing.command:tariff", ".features.pricing.utility_command:utility")
    },
)
