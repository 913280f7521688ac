"""Layouts of study.yaml: tables, figures, emulated rows, predictions, a census of CPU models."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from nephoscope.core.reading.fields import NAME, Record
from nephoscope.features.scheduler.inference.verdict import Word
from nephoscope.features.studies.definition.selectors import (
    MeasuredFigure,
    MetricSelection,
    PublishedFigure,
    Text,
)


class TableLine(MetricSelection):
    """A row or a column of a table: what it selects of the result, and its published cells.

    published: names of the published rows or columns, repetitions of one condition where there are
    several; the line's own name when empty. scale, unit: where they differ from the table's.
    why: the reason why nothing is measured here.
    """

    published: tuple[str, ...] = ()
    scale: float | None = None
    unit: str | None = None
    why: str = ""


class TableLayout(Record):
    """A published table, or a part of it, with the measured value in each cell.

    summary: the published rows that hold the mean and the standard deviation of one sample, from
    which the published interval follows. why: how the two experiments differ.
    """

    table: Text
    title: Text
    measured: MeasuredFigure
    unit: str = ""
    rows: Annotated[dict[Text, TableLine], Field(min_length=1)]
    columns: Annotated[dict[Text, TableLine], Field(min_length=1)]
    summary: tuple[Text, Text] | None = None
    why: Text

    @model_validator(mode="after")
    def _has_one_value_per_cell(self) -> Self:
        if not self.measured.is_single:
            raise ValueError(
                "a cell is one value: leave out `numerator`, `denominator` and `order`"
            )
        return self


class FigurePoint(Record):
    """A published number in a figure. x: its position; curve: the curve that it belongs to."""

    x: float | str
    curve: str = ""
    published: PublishedFigure


class FigureCurve(MetricSelection):
    """A curve of a figure. levels: where they differ from the figure's."""

    levels: dict[str, float | str] = Field(default_factory=dict)


class FigureLayout(Record):
    """A figure of the study, drawn with measured values.

    samples: every trial of each curve, in order. bars, lines: the estimate of each curve at each
    level of `factor`. levels: level -> its position on the axis. baseline: the condition by which
    every value is divided, round by round.
    """

    id: str = Field(pattern=NAME)
    figure: Text
    title: Text
    kind: Literal["samples", "bars", "lines"]
    measured: MeasuredFigure
    unit: str = ""
    x: Text
    y: Text
    factor: str = ""
    levels: dict[str, float | str] = Field(default_factory=dict)
    curves: Annotated[dict[Text, FigureCurve], Field(min_length=1)]
    baseline: MetricSelection | None = None
    points: tuple[FigurePoint, ...] = ()
    why: Text

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if not self.measured.is_single:
            raise ValueError(f"{self.id}: a figure has a `baseline`, its `measured` has no ratio")
        placed = all(self.levels or curve.levels for curve in self.curves.values())
        if (self.kind == "samples") == bool(self.factor and placed):
            raise ValueError(f"{self.id}: bars and lines need `factor` and `levels`, samples none")
        if self.kind == "samples" and self.baseline is not None:
            raise ValueError(f"{self.id}: samples are drawn as they are; leave out `baseline`")
        if unknown := {point.curve for point in self.points} - {"", *self.curves}:
            raise ValueError(f"{self.id}: no curve is named {', '.join(sorted(unknown))}")
        return self


class LabelledNumber(Record):
    """A published number with its label in the table ('EC2')."""

    table: Text
    cell: tuple[str, str]
    label: Text


class EmulatedShare(Record):
    """One figure of an emulated row. set_to: what the mechanism grants by its parameters."""

    name: Text
    measured: MeasuredFigure
    set_to: float = Field(alias="set")
    published: tuple[LabelledNumber, ...] = ()


class EmulatedRow(Record):
    """A published row that the lab emulates: its mechanism, and what it has to grant.

    within: maximum distance of the whole measured interval from what was set, in `unit`. verdict:
    what the scheduler inference has to say on `target`; '' where it is not asked. guaranteed: it
    is granted whatever else runs, so the part's controls do not matter. why: how the mechanism
    represents the study's.
    """

    id: str = Field(pattern=NAME)
    title: Text
    target: str = ""
    shares: Annotated[tuple[EmulatedShare, ...], Field(min_length=1)]
    unit: str = "% of a CPU"
    within: Annotated[float, Field(gt=0)] = 2.0
    verdict: str = ""
    guaranteed: bool = False
    why: Text

    @model_validator(mode="after")
    def _has_a_known_verdict(self) -> Self:
        if self.verdict and self.verdict not in list(Word):
            raise ValueError(
                f"{self.id}: '{self.verdict}' is no verdict. It has: {', '.join(Word)}"
            )
        if self.verdict and not self.target:
            raise ValueError(f"{self.id}: a verdict needs a `target`")
        return self


class PredictedLine(Record):
    """A condition: what it selects of the measured and of the simulated figure."""

    measured: MetricSelection
    simulated: MetricSelection


class PredictionLayout(Record):
    """A metric that the part measures and simulates, with a line for each condition.

    within: ratio within which both count as the same, e.g. 0.2; within_why: what sets it.
    why: what the simulation leaves out.
    """

    title: Text
    measured: MeasuredFigure
    simulated: MeasuredFigure
    unit: str = ""
    within: Annotated[float, Field(gt=0, lt=1)]
    within_why: Text
    lines: Annotated[dict[Text, PredictedLine], Field(min_length=1)]
    why: Text

    @model_validator(mode="after")
    def _has_one_value_per_side(self) -> Self:
        if not (self.measured.is_single and self.simulated.is_single):
            raise ValueError("both sides are one value: leave out `numerator` and `order`")
        return self


class CountedModels(Record):
    """A table of counted CPU models, whose rows are 'TYPE MODEL'.

    share: the column of shares in per cent; clock: of clocks in GHz, '' where there is none.
    """

    table: Text
    share: Text
    clock: str = ""


class RelativeSpeeds(Record):
    """A table of the speed of each model: rows are benchmarks, columns models.

    instance_type: the type on which they were measured.
    """

    table: Text
    instance_type: Text


class StudyCensus(Record):
    """The part of a study that is a census of CPU models (`nephoscope census --study NAME`).

    reference_type: the instance type that stands beside rented types of other names.
    """

    counted: CountedModels
    reference_type: str = ""
    speeds: tuple[RelativeSpeeds, ...] = ()
