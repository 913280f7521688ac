"""Third-party tools beside native benchmarks of the same quantity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.results.feature import Feature, Region, ReportSection

if TYPE_CHECKING:
    from nephoscope.results.run_data import RunData


def _has_tools(data: RunData) -> bool:
    """States whether a run has trials of a third-party tool and of a native benchmark."""
    from nephoscope import catalog  # each start of the program imports this file

    known = catalog.load().benchmarks
    kinds = {known[name].kind for name in data.benchmarks if name in known}
    return {catalog.ADAPTER, catalog.NATIVE} <= kinds


CROSS_CHECK = Feature(
    "cross_check",
    record=".features.crosscheck.result:CrossCheck",
    analyse=".features.crosscheck.result:analyse",
    applies=_has_tools,
    sections=(ReportSection("cross_check", ".features.crosscheck.section:build", Region.DETAIL),),
)
