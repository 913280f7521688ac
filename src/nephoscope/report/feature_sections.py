"""Builds the sections of a report in the order of the page."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

from nephoscope.core.model import RunResult
from nephoscope.report.blocks import Block, Chart, Figure, Heading, Section, Sentence
from nephoscope.report.sections import other_benchmarks
from nephoscope.results.feature import Region, ReportSection, contributing, load

Build = Callable[[RunResult], Section | None]

MIN_POINTS = 3
"""Points of the smallest chart; a table says less at one glance."""
MAX_OPEN_DETAILS = 3
"""Sections of single benchmarks that a page shows open; more are folded, and all of them where a
section states what the run was made for."""


def sections_of(result: RunResult) -> list[ReportSection]:
    """Returns the sections that may state something about a result, in the order of the page."""
    own = [section for entry, _ in contributing(result.parts) for section in entry.sections]
    return sorted(own, key=lambda section: section.region)


def build_all(result: RunResult) -> list[Section]:
    """Returns every section that has content, in the order of the page."""
    entries = sections_of(result)
    build = builders(entries)
    built = [
        (entry.region, section)
        for entry in entries
        if (section := build[entry.name](result)) is not None
    ]
    regions = [region for region, _ in built]
    is_answered = Region.ANSWER in regions
    are_many = regions.count(Region.DETAIL) > MAX_OPEN_DETAILS
    folded = {Region.APPENDIX} | ({Region.DETAIL} if is_answered or are_many else set())
    return [
        replace(
            section,
            blocks=tuple(part for block in section.blocks for part in _sparse_as_tables(block)),
            folded=region in folded,
        )
        for region, section in built
    ]


def _sparse_as_tables(block: Block) -> list[Block]:
    """Returns a chart of fewer than MIN_POINTS points as its table; any other block as it is."""
    if not isinstance(block, Chart) or _points(block.figure) >= MIN_POINTS:
        return [block]
    if block.repeats:
        return []
    caption: list[Block] = [Sentence(block.caption)] if block.caption else []
    return [Heading(block.title), *caption, block.brief or block.table]


def _points(figure: Figure) -> float:
    """Returns how many points a figure shows; of lines those of the longest one."""
    counts = {"lines": 0, "points": 0}
    for trace in figure["data"]:
        if trace["type"] not in ("scatter", "bar"):
            return math.inf
        if trace.get("hoverinfo") != "skip":
            own = sum(value is not None for value in trace["y"])
            is_line = "lines" in trace.get("mode", "")
            counts["lines"] = max(counts["lines"], own if is_line else 0)
            counts["points"] += 0 if is_line else own
    return max(counts.values())


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
