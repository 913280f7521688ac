"""The sections of the report, in the order of the page.

To add one: a file in this folder with `build(result) -> Section | None` (None where there is
nothing to report), and its line here. `benchmarks` are those whose charts the section draws; all
other benchmarks get charts by the shape of their metrics in `other_benchmarks`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nephoscope.census import section as census
from nephoscope.experiments import section as experiment
from nephoscope.isolation import section as isolation
from nephoscope.machine import cache_ladder_section, disk_section, loopback_section, scaling_section
from nephoscope.machine import section as machine
from nephoscope.model import RunResult
from nephoscope.report.blocks import Section
from nephoscope.report.sections import (
    excluded_trials,
    execution,
    findings,
    method,
    other_benchmarks,
    results,
    summary,
)
from nephoscope.scheduler import section as scheduling
from nephoscope.simulation import (
    deployment_section,
    placement_section,
    saving_section,
    scheduler_section,
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
    Entry("placement", placement_section.build, placement_section.BENCHMARKS),
    Entry("deployments", deployment_section.build, deployment_section.BENCHMARKS),
    Entry("simulated_scheduler", scheduler_section.build, scheduler_section.BENCHMARKS),
    Entry("saving", saving_section.build, saving_section.BENCHMARKS),
    Entry("isolation", isolation.build),
    Entry("experiment", experiment.build),
    Entry("census", census.build),
    Entry("results", results.build),
    Entry("scheduling", scheduling.build, scheduling.BENCHMARKS),
    Entry("cache_ladder", cache_ladder_section.build, cache_ladder_section.BENCHMARKS),
    Entry("scaling", scaling_section.build, scaling_section.BENCHMARKS),
    Entry("disk", disk_section.build, disk_section.BENCHMARKS),
    Entry("loopback", loopback_section.build, loopback_section.BENCHMARKS),
    Entry("other_benchmarks", lambda result: other_benchmarks.build(result, drawn_elsewhere())),
    Entry("findings", findings.build),
    Entry("machine", machine.build),
    Entry("execution", execution.build),
    Entry("method", method.build),
    Entry("excluded_trials", excluded_trials.build),
)


def drawn_elsewhere() -> frozenset[str]:
    """Benchmarks that have a section of their own."""
    return frozenset(name for entry in SECTIONS for name in entry.benchmarks)


def build_all(result: RunResult) -> list[Section]:
    """Every section that has something to say, in order."""
    built = (entry.build(result) for entry in SECTIONS)
    return [section for section in built if section is not None]
