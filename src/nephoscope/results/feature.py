"""What a feature of the program is, and which ones there are.

References are `module:name`, of which a leading dot stands for this program's package. They are
imported when a run needs them, so that no command loads the code of another one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nephoscope.results.run_data import RunData


PACKAGE = "nephoscope"

PROGRAM = ".app"
"""The module that lists the features, sections and commands of this program. It stands above all
others, and is imported by its name, as are features of other packages."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of findings: a tuple of functions. Rules with a lower `position` come first."""

    rules: str
    position: int


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A section of the report: a function `(result) -> Section | None` and its place on the page.

    Benchmarks that the section draws are its module's BENCHMARKS; they get no general chart.
    """

    name: str
    build: str
    position: int


@dataclass(frozen=True, slots=True)
class Command:
    """A click command, imported when it is called. summary: first sentence of its help.

    module: that of the function, `.features.NAME.command` unless given; with `:name` where the
    function does not have the command's name.
    """

    name: str
    summary: str
    module: str = ""

    @property
    def reference(self) -> str:
        """Returns `module:name` of the function."""
        module = self.module or f".features.{self.name}.command"
        return module if ":" in module else f"{module}:{self.name}"


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature and its contributions.

    name: key of its record in the result's JSON document. record: type of the record. analyse:
    function `(RunData) -> record | None`. applies: whether a run can have a record at all; answers
    without importing the feature. findings, sections: used where the run has a record.
    headline: function `(result) -> list[Tile]`, the record's own figures for the summary.
    answer: function `(result) -> list[str]`, sentences that answer the question of the plan.
    commands: of the command line.
    """

    name: str
    record: str
    analyse: str
    applies: Callable[[RunData], bool] = lambda data: True
    findings: tuple[Rules, ...] = ()
    sections: tuple[ReportSection, ...] = ()
    headline: str = ""
    answer: str = ""
    commands: tuple[Command, ...] = ()


def load(reference: str) -> Any:
    """Returns the object that `module:name` refers to."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module, PACKAGE), name)


def features() -> tuple[Feature, ...]:
    """Returns all features in the order of the program."""
    return tuple(load(f"{PROGRAM}:FEATURES"))


def shared_sections() -> tuple[ReportSection, ...]:
    """Returns the sections of every report."""
    return tuple(load(f"{PROGRAM}:SHARED_SECTIONS"))


def contributing(parts: tuple[Any, ...]) -> list[tuple[Feature, Any]]:
    """Returns the features that these records are of, in their order, each with its
    record."""
    by_type = {
        f"{type(part).__module__}:{type(part).__qualname__}".removeprefix(PACKAGE): part
        for part in parts
    }
    return [(entry, by_type[entry.record]) for entry in features() if entry.record in by_type]
