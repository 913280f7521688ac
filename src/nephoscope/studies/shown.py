"""What study.yaml says of tables to be filled and of figures to be drawn, as records."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from nephoscope.reading.fields import NAME, Record
from nephoscope.studies.picks import Ours, Pick, Text, Theirs


class Line(Pick):
    """A row or a column of a sheet: what it picks of our result, and where theirs stands.

    of: the published rows or columns that it stands beside, which are repetitions of one condition
    where there are several; its own name when empty. times, unit: as in `ours`, where they differ.
    why: the reason why there is nothing of ours to stand there.
    """

    of: tuple[str, ...] = ()
    times: float | None = None
    unit: str | None = None
    why: str = ""


class Sheet(Record):
    """A published table, or a part of it, with ours beside it, cell by cell.

    summary: the published rows that hold the mean and the standard deviation of one sample, from
    which an interval of theirs follows. why: what differs between the two.
    """

    table: Text
    title: Text
    ours: Ours
    unit: str = ""
    rows: Annotated[dict[Text, Line], Field(min_length=1)]
    columns: Annotated[dict[Text, Line], Field(min_length=1)]
    summary: tuple[Text, Text] | None = None
    why: Text

    @model_validator(mode="after")
    def _one_line_a_cell(self) -> Sheet:
        if self.ours.over is not None or self.ours.order:
            raise ValueError("a cell is one value: leave out `over`, `under` and `order`")
        return self


class Point(Record):
    """A number of the text, in a figure of ours. x: where it stands; curve: beside which."""

    x: float | str
    curve: str = ""
    theirs: Theirs


class Curve(Pick):
    """A curve of a figure. levels: where its levels are others than the figure's."""

    levels: dict[str, float | str] = Field(default_factory=dict)


class Drawing(Record):
    """A figure of the study with our values.

    samples: every trial of each curve, in order. bars, lines: the estimate of each curve at each
    level of the factor `along`; bars for numbers of threads, lines for rates. levels: level -> its
    place on the axis. over: the condition that every value is divided by, round by round.
    """

    id: str = Field(pattern=NAME)
    figure: Text
    title: Text
    kind: Literal["samples", "bars", "lines"]
    ours: Ours
    unit: str = ""
    x: Text
    y: Text
    along: str = ""
    levels: dict[str, float | str] = Field(default_factory=dict)
    curves: Annotated[dict[Text, Curve], Field(min_length=1)]
    over: Pick | None = None
    points: tuple[Point, ...] = ()
    why: Text

    @model_validator(mode="after")
    def _whole(self) -> Drawing:
        if self.ours.over is not None or self.ours.order:
            raise ValueError(f"{self.id}: `over` stands beside `curves`, not in `ours`")
        placed = all(self.levels or curve.levels for curve in self.curves.values())
        if (self.kind == "samples") == bool(self.along and placed):
            raise ValueError(f"{self.id}: bars and lines need `along` and `levels`, samples none")
        if self.kind == "samples" and self.over is not None:
            raise ValueError(f"{self.id}: samples are drawn as they are; leave out `over`")
        if unknown := {point.curve for point in self.points} - {"", *self.curves}:
            raise ValueError(f"{self.id}: no curve is named {', '.join(sorted(unknown))}")
        return self
