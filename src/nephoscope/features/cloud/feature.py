"""Rented machines: what a cloud offers, what is rented, what is left behind."""

from __future__ import annotations

from nephoscope.results.feature import Feature

CLOUD = Feature(
    "cloud",
    needs=("census", "experiments", "platforms", "studies"),
    commands=(".features.cloud.commands:cloud",),
    study_census=".features.cloud.study_census:carry_out",
)
