"""Boots that a run recorded, as a section of its report."""

from __future__ import annotations

from nephoscope.catalog import HOST_BOOT
from nephoscope.core.model import RunResult
from nephoscope.features.platforms import boot_chart
from nephoscope.features.platforms.records import StoredBoots
from nephoscope.report.blocks import Section

BENCHMARKS = (HOST_BOOT,)


def build(result: RunResult) -> Section | None:
    """Returns the boot timeline of a run."""
    stored = result.part(StoredBoots)
    if stored is None:
        return None
    return Section("boots", "Boots", (boot_chart.chart(stored.boots),))
