"""Builds the sections of a report in the order of the page."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from nephoscope.core.model import RunResult
from nephoscope.report.blocks import Section
from nephoscope.report.sections import other_benchmarks
from nephoscope.results.feature import ReportSection, contributing, load

Build = Callable[[RunResult], Section | None]


def sections_of(result: RunResult) -> list[ReportSection]:
    """Returns the sections that may state something about a result, in the order of the page."""
    own = [section for entry, _ in contributing(result.parts) for section in entry.sections]
    return sorted(own, key=lambda section: section.region)


def build_all(result: RunResult) -> list[Section]:
    """Returns every section that has content, in the order of the page."""
    entries = sections_of(result)
    build = builders(entries)
    built = (build[entry.name](result) for entry in entries)
    return [section for section in built if section is not None]


def builders(entries: Sequence[ReportSection]) -> dict[str, Build]:
    """Returns the function that builds each of these sections, by name."""
    loaded: dict[str, Build] = {entry.name: load(entry.build) for entry in entries}
    drawn = {
        benchmark
        for build in loaded.values()
        for benchmark in getattr(sys.modules[build.__module__], "BENCHMARKS", ())
    }
    return loaded | {
        "other_benchmarks": lambda result: other_benchmarks.build(result, frozenset(drawn))
    }
