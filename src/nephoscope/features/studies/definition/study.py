"""Records of study.yaml (a study, its parts and comparisons) and tables.yaml (printed tables)."""

from __future__ import annotations

from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from nephoscope.core.reading.fields import NAME, Count, Record
from nephoscope.features.studies.definition.layouts import (
    EmulatedRow,
    FigureLayout,
    PredictionLayout,
    StudyCensus,
    TableLayout,
)
from nephoscope.features.studies.definition.selectors import MeasuredFigure, PublishedFigure, Text

Scale = Literal["small", "paper"]
"""small: minutes on two CPUs. paper: as the study did it."""

SCALES: tuple[str, ...] = get_args(Scale)

Ground = Literal[
    "same mechanism", "emulated", "fitted", "set by the plan", "in kind", "not comparable"
]
"""On what ground two figures can be compared.

same mechanism: the same quantity, by the same mechanism or formula. emulated: the same quantity, by
another mechanism that has the parameters which the study states. fitted: parameters here were
chosen so that this very figure comes out. set by the plan: the plan sets the figure itself, such as
a share of a CPU whose setting the study does not state. Agreement of these two proves nothing about
the study. in kind: the direction or order of an effect. not comparable: none of these, and `why`
gives the reason.
"""

IN_NUMBER: frozenset[Ground] = frozenset({"same mechanism", "emulated"})
CIRCULAR: frozenset[Ground] = frozenset({"fitted", "set by the plan"})


class StudyComparison(Record):
    """A question that the study answered and a run answers again.

    margin: ratio within which two figures count as the same number; margin_why: what sets it.
    neutral: the value that means 'no effect'. negligible: distance from it that does not matter.
    guaranteed: it holds whatever else runs on the machine, so the part's controls do not matter.
    why: the reason for the ground: what is the same, what was fitted or set, or what differs.
    """

    id: str = Field(pattern=NAME)
    claim: Text
    published: PublishedFigure
    measured: MeasuredFigure | None = None
    ground: Ground
    unit: str = ""
    margin: Annotated[float, Field(gt=0, lt=1)] | None = None
    margin_why: str = ""
    neutral: float | None = None
    negligible: Annotated[float, Field(gt=0)] | None = None
    guaranteed: bool = False
    why: Text

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.ground != "not comparable" and self.measured is None:
            raise ValueError(f"{self.id}: a comparison needs `measured`")
        if self.published.bound and (self.margin or self.neutral is not None):
            raise ValueError(f"{self.id}: a `bound` has no `margin` and no `neutral`")
        is_order = bool(self.published.order) and self.ground in CIRCULAR
        by_margin = self.ground in IN_NUMBER | CIRCULAR and not (self.published.bound or is_order)
        if by_margin and not (self.margin and self.margin_why):
            raise ValueError(f"{self.id}: {self.ground} needs `margin` and `margin_why`")
        order = set(self.published.order)
        if self.measured is not None and bool(order) != bool(self.measured.order):
            raise ValueError(f"{self.id}: an order is compared with an order")
        if self.measured is not None and order != set(self.measured.order):
            raise ValueError(f"{self.id}: both orders need the same names")
        if self.measured is not None and self.measured.is_ratio and self.unit not in ("", "times"):
            raise ValueError(f"{self.id}: a ratio is in times; `difference` has a unit")
        needs_neutral = self.ground == "in kind" and not (order or self.published.bound)
        if needs_neutral and self.neutral is None:
            raise ValueError(f"{self.id}: in kind needs `neutral`")
        return self


class Control(Record):
    """A condition without which a run of a part proves nothing: the machine was otherwise idle.

    Of a value: its whole interval lies at or above `at_least`, or at or below `at_most`. Of a ratio
    of two conditions that differ in nothing: its interval reaches into 1 plus or minus `within`.
    comparisons: ids of the comparisons that it is about; all of the part's when empty.
    """

    claim: Text
    measured: MeasuredFigure
    at_least: float | None = None
    at_most: float | None = None
    within: Annotated[float, Field(gt=0, lt=1)] | None = None
    unit: str = ""
    comparisons: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _has_one_form(self) -> Self:
        if self.measured.order:
            raise ValueError("a control is a value or a ratio: leave out `order`")
        bounds = (self.at_least, self.at_most, self.within)
        if sum(bound is not None for bound in bounds) != 1:
            raise ValueError("give one of `at_least`, `at_most` and `within`")
        if self.measured.is_single != (self.within is None):
            raise ValueError(
                "`at_least` and `at_most` bound a value, `within` a ratio of two conditions"
            )
        return self


class Conclusion(Record):
    """A conclusion of a study from several figures: it stands when all of them do.

    comparisons: 'part/id' of each comparison on which it rests.
    """

    id: str = Field(pattern=NAME)
    claim: Text
    comparisons: Annotated[tuple[str, ...], Field(min_length=1)]
    why: Text


class AgreementRow(Record):
    """A figure of an agreement that the study states, to be computed from a contract's terms.

    table, row, column: of the published number. contract: its name. figure: the objective in per
    cent, or the downtime that a period allows, in hours. margin: ratio within which they agree.
    """

    claim: Text
    table: Text
    row: Text
    column: Text
    contract: Text
    figure: Literal["objective", "allowed_downtime"]
    margin: Annotated[float, Field(ge=0, lt=1)] = 0.0
    why: str = ""


class Part(Record):
    """A part of a study: it has a plan, is computed from agreements, or states what is missing.

    scales: for each scale the dotted paths that are set over the plan, as with `--set`.
    """

    name: str = Field(pattern=NAME)
    title: Text
    section: Text
    plan: str = ""
    not_yet: str = ""
    scales: dict[Scale, dict[str, str]] = Field(default_factory=dict)
    controls: tuple[Control, ...] = ()
    comparisons: tuple[StudyComparison, ...] = ()
    tables: tuple[TableLayout, ...] = ()
    figures: tuple[FigureLayout, ...] = ()
    emulated: tuple[EmulatedRow, ...] = ()
    predictions: tuple[PredictionLayout, ...] = ()
    agreements: tuple[AgreementRow, ...] = ()

    @model_validator(mode="after")
    def _has_plan_or_reason(self) -> Self:
        if sum(map(bool, (self.plan, self.not_yet, self.agreements))) != 1:
            raise ValueError(f"{self.name}: give either `plan` or `not_yet`, or `agreements`")
        if self.plan and set(self.scales) != set(SCALES):
            raise ValueError(f"{self.name}: state what each scale sets: {', '.join(SCALES)}")
        needs_run = (
            self.scales
            or self.tables
            or self.figures
            or self.emulated
            or self.predictions
            or any(comparison.measured for comparison in self.comparisons)
        )
        if not self.plan and needs_run:
            raise ValueError(f"{self.name}: without a plan nothing is measured to compare")
        known = {comparison.id for comparison in self.comparisons}
        if unknown := {name for control in self.controls for name in control.comparisons} - known:
            raise ValueError(f"{self.name}: no comparison is named {', '.join(sorted(unknown))}")
        return self


class Study(Record):
    """A study: its authors, its question, and its parts."""

    version: Literal[1] = 1
    title: Text
    authors: Annotated[tuple[str, ...], Field(min_length=1)]
    year: Annotated[Count, Field(ge=1900, le=2100)]
    venue: Text
    question: Text
    parts: Annotated[tuple[Part, ...], Field(min_length=1)]
    census: StudyCensus | None = None
    conclusions: tuple[Conclusion, ...] = ()

    @model_validator(mode="after")
    def _has_known_comparisons(self) -> Self:
        known = {f"{part.name}/{entry.id}" for part in self.parts for entry in part.comparisons}
        for conclusion in self.conclusions:
            if unknown := set(conclusion.comparisons) - known:
                names = ", ".join(sorted(unknown))
                raise ValueError(f"{conclusion.id}: there is no comparison {names}")
        return self


class PrintedTable(Record):
    """A printed table. text: row -> column -> text of a cell without a number."""

    name: Text
    about: Text
    numbers: Annotated[Count, Field(ge=1)]
    columns: Annotated[tuple[str, ...], Field(min_length=1)]
    rows: Annotated[tuple[str, ...], Field(min_length=1)]
    text: dict[str, dict[str, str]] = Field(default_factory=dict)


class MissingTable(Record):
    """A table or figure whose numbers are not in the text."""

    name: Text
    why: Text


class Tables(Record):
    """The tables of a text, and those whose numbers it does not give."""

    tables: tuple[PrintedTable, ...] = ()
    missing: tuple[MissingTable, ...] = ()
