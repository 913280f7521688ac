"""What a feature of the program is, and which ones there are.

References are `module:name`, of which a leading dot stands for this program's package. They are
imported when a run needs them, so that no command loads the code of another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum, auto
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from nephoscope.core import plugins

if TYPE_CHECKING:
    from nephoscope.results.run_data import RunData


PACKAGE = "nephoscope"

GROUP = "nephoscope.features"
"""Entry points of other packages' features: a `Feature`, or a tuple of them."""

PROGRAM = ".app"
"""The module that lists the features of this program. It stands above all others, and is imported
by its name, as are features of other packages."""


class Region(IntEnum):
    """The parts of a report in the order of the page; within a part, features keep their order."""

    FIRST = auto()
    """What everybody reads: the summary and the findings."""
    ANSWER = auto()
    """What the run was made for."""
    DESIGN = auto()
    """What the factors of the plan, its clients and servers, and its machines did."""
    RESULTS = auto()
    """All figures that were measured."""
    DETAIL = auto()
    """The figures of single benchmarks as charts."""
    APPENDIX = auto()
    """What was measured on, how, and what was left out."""


class Topic(StrEnum):
    """The groups of commands in the help of the program, in its order."""

    MEASURE = "Measure"
    RESULTS = "Results"
    DECIDE = "Decide"
    CLOUD = "Cloud"
    EMULATE = "Emulate"
    TOOLS = "Tools"


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A section of the report: a function `(result) -> Section | None` and its part of the page.

    Benchmarks that the section draws are its module's BENCHMARKS; they get no general chart.
    """

    name: str
    build: str
    region: Region


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature and its contributions.

    name: key of its record in the result's JSON document. needs: folders of other features whose
    code it imports. record: type of the record; empty for a feature that states nothing of a run.
    analyse: function `(RunData) -> record | None`; a feature without one extends that of the same
    record. applies: whether a run can have a record at all; answers without importing the feature.
    findings: tuples of rules, used as the sections are where the run has a record, and for every
    run without one. headline: function `(result) -> list[Tile]`, the record's own figures for the
    summary. answer: function `(result) -> list[str]`, sentences that answer the question of the
    plan. commands: of the command line. subcommands: name of another feature's group of commands ->
    those that stand below it. topic: where the help lists the commands. study_census: function that
    counts the CPU models of rented machines beside those of a study, `(ReferenceStudy,
    StudyCensusRequest) -> exit code`.
    """

    name: str
    needs: tuple[str, ...] = ()
    record: str = ""
    analyse: str = ""
    applies: Callable[[RunData], bool] = lambda data: True
    findings: tuple[str, ...] = ()
    sections: tuple[ReportSection, ...] = ()
    headline: str = ""
    answer: str = ""
    commands: tuple[str, ...] = ()
    subcommands: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    topic: Topic = Topic.TOOLS
    study_census: str = ""

    @property
    def references(self) -> Iterator[str]:
        """Yields everything that the feature refers to."""
        own = (self.record, self.analyse, self.headline, self.answer, self.study_census)
        below = (reference for group in self.subcommands.values() for reference in group)
        yield from filter(None, (*own, *self.findings, *self.commands, *below))
        yield from (section.build for section in self.sections)


def load(reference: str) -> Any:
    """Returns the object that `module:name` refers to."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module, PACKAGE), name)


def command_name(reference: str) -> str:
    """Returns the name by which the command of a function is called: 'what-if' of 'what_if'."""
    return reference.rpartition(":")[2].strip("_").replace("_", "-")


@cache
def features() -> tuple[Feature, ...]:
    """Returns all features in the order of the program, those of other packages after its own."""
    own: tuple[Feature, ...] = load(f"{PROGRAM}:FEATURES")
    used_names = {name for entry in own for name in _names(entry)}
    return (*own, *plugins.plugins_of(GROUP, Feature, _names, used_names, _import_all))


def analysed() -> list[Feature]:
    """Returns the features with a record of a run."""
    return [entry for entry in features() if entry.analyse]


def _names(entry: Feature) -> list[str]:
    """Names that only one feature may have."""
    sections = [f"section {section.name}" for section in entry.sections]
    return [
        entry.name,
        *sections,
        *(f"command {command_name(command)}" for command in entry.commands),
        *(
            f"command {group} {command_name(command)}"
            for group, commands in entry.subcommands.items()
            for command in commands
        ),
    ]


def _import_all(entry: Feature) -> None:
    for reference in entry.references:
        load(reference)


def contributing(parts: tuple[Any, ...]) -> list[tuple[Feature, Any]]:
    """Returns the features that have something to say where a run has these records, in their
    order, each with its record; features without a record have None."""
    by_type = {
        f"{type(part).__module__}:{type(part).__qualname__}".removeprefix(PACKAGE): part
        for part in parts
    }
    return [
        (entry, by_type.get(entry.record))
        for entry in features()
        if not entry.record or entry.record in by_type
    ]
