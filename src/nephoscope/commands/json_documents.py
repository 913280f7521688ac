"""States which JSON document each command prints with `--json`, and the schema of each.

The larger documents are defined by the records of their capabilities; the others stand here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nephoscope.catalog import BenchmarkSpec
from nephoscope.commands.checks.frame import Finding
from nephoscope.commands.configuration import Value
from nephoscope.load.records import CapacityResult

COMMANDS: Mapping[str, Mapping[str, str]] = {
    "survey": {"": "result", "--repeat-runs": "repeats"},
    "run": {"": "result", "--repeat-runs": "repeats", "--dry-run": "preview"},
    "bench": {"": "result"},
    "load": {"": "result"},
    "capacity": {"": "capacity"},
    "balance": {"": "result"},
    "isolate": {"": "result", "--dry-run": "preview"},
    "scheduler": {"": "result"},
    "simulate geo": {"": "result", "no SCENARIO": "scenarios"},
    "simulate scheduler": {"": "result", "no SCENARIO": "scenarios"},
    "simulate selection": {"": "result", "no SCENARIO": "scenarios"},
    "census": {"": "census"},
    "compare": {"": "compare"},
    "study list": {"": "studies"},
    "study show": {"": "study"},
    "study run": {"": "study_run"},
    "runs": {"": "runs"},
    "runs label": {"": "run_labels"},
    "runs rm": {"": "removed_runs"},
    "show": {"": "result", "--journal": "journal"},
    "stop": {"": "stopped"},
    "import": {"": "result"},
    "verify": {"": "verified_runs"},
    "list": {"": "benchmarks", "BENCHMARK": "benchmark"},
    "doctor": {"": "host_check"},
    "config": {"": "configuration"},
    "version": {"": "versions"},
    "lab up": {"": "lab"},
    "lab down": {"": "removed_labs"},
    "lab list": {"": "labs"},
    "lab check": {"": "lab_check"},
}
"""Command -> option or argument (empty: without) -> name of the document."""

CONTRACTS = ("result", "compare", "repeats", "census")
"""Documents with a file of their own, contracts/NAME.schema.json; the others are defined below."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions of the program, its probe, the probe's protocol and Python."""

    nephoscope: str
    probe: str
    protocol: int
    python: str


@dataclass(frozen=True, slots=True)
class StoredRunRow:
    """A run of the store. spent_s: measured time; targets: their names."""

    id: str
    plan: str | None
    state: str
    started_at: str | None
    spent_s: float | None
    trials: int
    targets: tuple[str, ...]
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StoredRuns:
    """Runs of a store, newest first."""

    store: str
    runs: tuple[StoredRunRow, ...]


@dataclass(frozen=True, slots=True)
class RunLabels:
    """All labels of a run after a change."""

    run: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RemovedRuns:
    """Ids of the runs that were removed."""

    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VerifiedRuns:
    """Runs whose files were compared with their digests. damaged: sentences; run: may be empty."""

    runs: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Journal:
    """Events of a run in the order of time; each has `at` and `event`."""

    events: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class StoppedRun:
    """A run that was asked to end. pid: null where no process measured it."""

    run: str
    pid: int | None
    trials: int
    waited_s: float


@dataclass(frozen=True, slots=True)
class Benchmark(BenchmarkSpec):
    """A benchmark's declaration. here: path of an adapter's tool on this host, or null."""

    here: str | None = None


@dataclass(frozen=True, slots=True)
class Benchmarks:
    """All benchmarks."""

    benchmarks: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class HostCheck:
    """Outcome of the checks of a host. ready: nothing that a survey needs is missing."""

    ready: bool
    checks: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class ConfigurationValues:
    """The configuration. file: its path, whether or not it exists."""

    file: str | None
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Preview:
    """A plan that was not run: settings, order of trials, estimated time and side effects."""

    plan: str
    question: str
    seed: int | None
    targets: tuple[Row, ...]
    settings: tuple[Row, ...]
    designs: tuple[Row, ...]
    schedule: tuple[Row, ...]
    estimate: Row
    touches: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Scenarios:
    """Built-in scenarios of a simulation by name."""

    scenarios: Row


@dataclass(frozen=True, slots=True)
class Studies:
    """Published studies with their parts and the last run of each."""

    studies: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyResults:
    """Published and measured values of a study side by side, and its conclusions.

    runs: the runs that were compared. warnings: by run.
    """

    name: str
    runs: tuple[str, ...]
    warnings: Mapping[str, tuple[str, ...]]
    comparisons: tuple[Row, ...]
    tables: tuple[Row, ...]
    emulated: tuple[Row, ...]
    predictions: tuple[Row, ...]
    measured_and_simulated: tuple[Row, ...]
    figures: tuple[Row, ...]
    conclusions: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRun(StudyResults):
    """A study that was repeated now. scale: of its experiments."""

    scale: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Study(StudyResults):
    """A study: its publication, its parts, published numbers and what was measured here."""

    title: str
    authors: tuple[str, ...]
    year: int
    venue: str
    question: str
    parts: tuple[Row, ...]
    printed_tables: tuple[Any, ...]
    missing_tables: Any
    numbers: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Lab:
    """A lab that was created: its hosts and links. elapsed_s: duration of the creation."""

    name: str
    directory: str
    warnings: tuple[str, ...]
    hosts: tuple[Row, ...]
    links: tuple[Row, ...]
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class Labs:
    """Labs on this machine."""

    labs: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class RemovedLabs:
    """Labs that were removed."""

    removed: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class LabCheck:
    """Outcomes of the checks of the lab's mechanisms."""

    checks: tuple[Row, ...]


RECORDS: Mapping[str, type[Any]] = {
    "versions": Versions,
    "runs": StoredRuns,
    "run_labels": RunLabels,
    "removed_runs": RemovedRuns,
    "verified_runs": VerifiedRuns,
    "journal": Journal,
    "stopped": StoppedRun,
    "benchmarks": Benchmarks,
    "benchmark": Benchmark,
    "host_check": HostCheck,
    "configuration": ConfigurationValues,
    "preview": Preview,
    "capacity": CapacityResult,
    "scenarios": Scenarios,
    "studies": Studies,
    "study": Study,
    "study_run": StudyRun,
    "lab": Lab,
    "labs": Labs,
    "removed_labs": RemovedLabs,
    "lab_check": LabCheck,
}
"""Name of a document -> its record, for contracts/commands.schema.json."""


def commands_schema() -> dict[str, Any]:
    """Returns the schema of all documents without a file of their own, each under `$defs`."""
    from nephoscope.documents import DRAFT, schema_of

    definitions: dict[str, Any] = {}
    for name, record in RECORDS.items():
        schema = schema_of(record, name)
        definitions |= schema.pop("$defs", {})
        schema.pop("$schema")
        definitions[name] = schema
    return {"$schema": DRAFT, "title": "Documents of Nephoscope's commands", "$defs": definitions}
