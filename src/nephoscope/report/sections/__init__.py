"""The sections of the report, in the order of the page.

To add one: a file in this folder with `build(result) -> Section | None` (None where there is
nothing to say), and its line here. `benchmarks` are those whose charts the section draws; what no
section draws gets a chart by its shape in `also`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nephoscope.model import RunResult
from nephoscope.report.blocks import Section
from nephoscope.report.sections import (
    also,
    cache_ladder,
    census,
    delivers,
    deployments,
    disk,
    experiment,
    invalid,
    isolation,
    loopback,
    machine,
    method,
    odd,
    phases,
    placement,
    saving,
    scaling,
    scheduling,
    simulated_scheduler,
    summary,
)

Build = Callable[[RunResult], Section | None]


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the table: the file's name, its builder, and the benchmarks it draws."""

    name: str
    build: Build
    benchmarks: tuple[str, ...] = ()


SECTIONS: tuple[Entry, ...] = (
    Entry("summary", summary.build),
    Entry("placement", placement.build, placement.BENCHMARKS),
    Entry("deployments", deployments.build, deployments.BENCHMARKS),
    Entry("simulated_scheduler", simulated_scheduler.build, simulated_scheduler.BENCHMARKS),
    Entry("saving", saving.build, saving.BENCHMARKS),
    Entry("isolation", isolation.build),
    Entry("experiment", experiment.build),
    Entry("machine", machine.build),
    Entry("census", census.build),
    Entry("delivers", delivers.build),
    Entry("scheduling", scheduling.build, scheduling.BENCHMARKS),
    Entry("cache_ladder", cache_ladder.build, cache_ladder.BENCHMARKS),
    Entry("scaling", scaling.build, scaling.BENCHMARKS),
    Entry("disk", disk.build, disk.BENCHMARKS),
    Entry("loopback", loopback.build, loopback.BENCHMARKS),
    Entry("also", lambda result: also.build(result, drawn_elsewhere())),
    Entry("odd", odd.build),
    Entry("phases", phases.build),
    Entry("method", method.build),
    Entry("invalid", invalid.build),
)


def drawn_elsewhere() -> frozenset[str]:
    """Benchmarks that have a section of their own."""
    return frozenset(name for entry in SECTIONS for name in entry.benchmarks)


def build_all(result: RunResult) -> list[Section]:
    """Every section that has something to say, in order."""
    built = (entry.build(result) for entry in SECTIONS)
    return [section for section in built if section is not None]
