"""Samples of runs for other programs, and data sets for publication."""

from __future__ import annotations

from nephoscope.results.feature import Feature, Topic

DATASETS = Feature("datasets", commands=(".features.datasets.command:export",), topic=Topic.RESULTS)
