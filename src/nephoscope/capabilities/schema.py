"""JSON Schemas of what `--json` prints, from the records; contracts/ holds them."""

from __future__ import annotations

from dataclasses import make_dataclass
from typing import Any

from nephoscope.capabilities import table
from nephoscope.documents import schema_of
from nephoscope.model import RunResult


def result_schema() -> dict[str, Any]:
    """Returns the schema of what `survey`, `run`, `bench` and `show` print with --json."""
    parts = [(entry.name, table.load(entry.record) | None, None) for entry in table.TABLE]
    document = make_dataclass("RunDocument", parts, bases=(RunResult,), frozen=True)
    document.__doc__ = "A run's result; null where a capability has nothing to state about it."
    return schema_of(document, "Result of a Nephoscope run")


def compare_schema() -> dict[str, Any]:
    """Returns the schema of what `compare` prints with --json."""
    from nephoscope.comparison.result import Comparisons

    return schema_of(Comparisons, "Comparison by Nephoscope")


def repeats_schema() -> dict[str, Any]:
    """Returns the schema of what `survey` and `run` print with --repeat-runs and --json."""
    from nephoscope.comparison.repeats import RepeatedRuns

    return schema_of(RepeatedRuns, "Repeated runs by Nephoscope")


def census_schema() -> dict[str, Any]:
    """Returns the schema of what `census --json` prints."""
    from nephoscope.census.records import Census

    return schema_of(Census, "Census of CPU models by Nephoscope")
