"""The JSON documents of comparisons, which several commands print."""

from __future__ import annotations

from nephoscope.cli.kit.command import Document

COMPARISONS = Document(
    "compare", ".features.comparison.result:Comparisons", "Comparison by Nephoscope"
)
REPEATS = Document(
    "repeats", ".features.comparison.repeats:RepeatedRuns", "Repeated runs by Nephoscope"
)
