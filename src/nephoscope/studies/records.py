"""What study.yaml and tables.yaml say, as records."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from nephoscope.reading.fields import NAME, Count, Record
from nephoscope.studies.counted import Census
from nephoscope.studies.emulated import Emulated
from nephoscope.studies.picks import Cell, Ours, Pick, Text, Theirs
from nephoscope.studies.shown import Drawing, Sheet

__all__ = [
    "SCALES",
    "Cell",
    "Conclusion",
    "Control",
    "Drawing",
    "Ground",
    "Lost",
    "Mapping",
    "Ours",
    "Part",
    "Pick",
    "Scale",
    "Sheet",
    "Study",
    "Table",
    "Tables",
    "Text",
    "Theirs",
]

Scale = Literal["small", "paper"]
"""small: minutes on two CPUs. paper: as the study did it."""

SCALES: tuple[str, ...] = get_args(Scale)

Ground = Literal["in number", "in kind", "not comparable"]
"""On what ground two numbers can be held against each other.

in number: the same quantity, set by the same mechanism (a share, a rate that was set). in kind: the
direction or order of an effect. not comparable: neither, and `why` says so.
"""


class Mapping(Record):
    """One question that the study answered and ours answers again.

    margin: ratio within which two figures count as the same in number; margin_why: what sets it.
    neutral: the value that means 'no effect'. negligible: distance from it that does not matter.
    guaranteed: it holds whatever else runs on the machine, so the part's controls do not matter.
    why: on what ground they can be compared, or why not.
    """

    id: str = Field(pattern=NAME)
    claim: Text
    theirs: Theirs
    ours: Ours | None = None
    ground: Ground
    unit: str = ""
    margin: Annotated[float, Field(gt=0, lt=1)] | None = None
    margin_why: str = ""
    neutral: float | None = None
    negligible: Annotated[float, Field(gt=0)] | None = None
    guaranteed: bool = False
    why: Text

    @model_validator(mode="after")
    def _complete(self) -> Mapping:
        if self.ground != "not comparable" and self.ours is None:
            raise ValueError(f"{self.id}: what is compared needs `ours`")
        if self.ground == "in number" and not (self.margin and self.margin_why):
            raise ValueError(f"{self.id}: in number needs `margin` and `margin_why`")
        is_order = bool(self.theirs.order)
        if self.ours is not None and is_order != bool(self.ours.order):
            raise ValueError(f"{self.id}: an order is compared with an order")
        if is_order and self.ours and set(self.theirs.order) != set(self.ours.order):
            raise ValueError(f"{self.id}: both orders need the same names")
        if self.ground == "in kind" and not is_order and self.neutral is None:
            raise ValueError(f"{self.id}: in kind needs `neutral`")
        return self


class Control(Record):
    """What must hold before a run of a part says anything: that the machine was ours alone.

    Of a value: the whole interval of `ours` lies at or above `at_least`, in its unit. Of a ratio
    (`over` and `under` of two conditions that differ in nothing): its interval reaches into 1 plus
    or minus `within`, so that what differs between two that are alike is no more than that.
    of: ids of the comparisons that it is about; all of the part's when empty.
    """

    claim: Text
    ours: Ours
    at_least: float | None = None
    within: Annotated[float, Field(gt=0, lt=1)] | None = None
    unit: str = ""
    of: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _one_form(self) -> Control:
        if self.ours.order:
            raise ValueError("a control is a value or a ratio: leave out `order`")
        if (self.at_least is None) == (self.within is None):
            raise ValueError("give one of `at_least` and `within`")
        if (self.ours.over is None) != (self.within is None):
            raise ValueError("`at_least` bounds a value, `within` a ratio of `over` and `under`")
        return self


class Conclusion(Record):
    """What a study concluded from several of its figures: it stands when all of them do.

    of: 'part/id' of each comparison that it rests on.
    """

    id: str = Field(pattern=NAME)
    claim: Text
    of: Annotated[tuple[str, ...], Field(min_length=1)]
    why: Text


class Part(Record):
    """A part of a study: what exists here has a plan, what does not says what is lacking.

    scales: for each scale the dotted paths that are set over the plan, as with `--set`.
    """

    name: str = Field(pattern=NAME)
    title: Text
    section: Text
    plan: str = ""
    not_yet: str = ""
    scales: dict[Scale, dict[str, str]] = Field(default_factory=dict)
    controls: tuple[Control, ...] = ()
    comparisons: tuple[Mapping, ...] = ()
    sheets: tuple[Sheet, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    emulated: tuple[Emulated, ...] = ()

    @model_validator(mode="after")
    def _here_or_not(self) -> Part:
        if bool(self.plan) == bool(self.not_yet):
            raise ValueError(f"{self.name}: give either `plan` or `not_yet`")
        if self.plan and set(self.scales) != set(SCALES):
            raise ValueError(f"{self.name}: say what each scale sets: {', '.join(SCALES)}")
        of_ours = (
            self.sheets or self.drawings or self.emulated or any(m.ours for m in self.comparisons)
        )
        if not self.plan and (self.scales or of_ours):
            raise ValueError(f"{self.name}: without a plan there is nothing of ours to compare")
        known = {mapping.id for mapping in self.comparisons}
        if unknown := {one for control in self.controls for one in control.of} - known:
            raise ValueError(f"{self.name}: no comparison is named {', '.join(sorted(unknown))}")
        return self


class Study(Record):
    """A study: whose, what it is about, and its parts."""

    version: Literal[1] = 1
    title: Text
    authors: Annotated[tuple[str, ...], Field(min_length=1)]
    year: Annotated[Count, Field(ge=1900, le=2100)]
    venue: Text
    question: Text
    parts: Annotated[tuple[Part, ...], Field(min_length=1)]
    census: Census | None = None
    conclusions: tuple[Conclusion, ...] = ()

    @model_validator(mode="after")
    def _rests_on_comparisons(self) -> Study:
        known = {f"{part.name}/{one.id}" for part in self.parts for one in part.comparisons}
        for conclusion in self.conclusions:
            if unknown := set(conclusion.of) - known:
                told = ", ".join(sorted(unknown))
                raise ValueError(f"{conclusion.id}: there is no comparison {told}")
        return self


class Table(Record):
    """A table of the text. words: row -> column -> what stands in a cell without a number."""

    name: Text
    about: Text
    numbers: Annotated[Count, Field(ge=1)]
    columns: Annotated[tuple[str, ...], Field(min_length=1)]
    rows: Annotated[tuple[str, ...], Field(min_length=1)]
    words: dict[str, dict[str, str]] = Field(default_factory=dict)


class Lost(Record):
    """A table or figure whose numbers are not in the text."""

    name: Text
    why: Text


class Tables(Record):
    """The tables of a text, and what of it is lost."""

    tables: tuple[Table, ...] = ()
    lost: tuple[Lost, ...] = ()
