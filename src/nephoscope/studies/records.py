"""What study.yaml and tables.yaml say, as records."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from nephoscope.reading.fields import NAME, Count, Record
from nephoscope.studies.counted import Census

Scale = Literal["small", "paper"]
"""small: minutes on two CPUs. paper: as the study did it."""

SCALES: tuple[str, ...] = get_args(Scale)

Ground = Literal["in number", "in kind", "not comparable"]
"""On what ground two numbers can be held against each other.

in number: the same quantity, set by the same mechanism (a share, a rate that was set). in kind: the
direction or order of an effect. not comparable: neither, and `why` says so.
"""

Cell = tuple[str, str]
"""Row and column of a published number."""

Cells = Annotated[
    tuple[Cell, ...],
    Field(min_length=1),
    BeforeValidator(lambda v: (v,) if v and isinstance(v[0], str) else v),
]
"""One cell, or several whose mean is meant: the sets of one condition."""

Text = Annotated[str, Field(min_length=1)]


class Theirs(Record):
    """A figure of the study: a number, a ratio of two, or an order that it states.

    The figure is `plus + times * number`, so that '0.7 % more' becomes the ratio 1.007. Where a
    ratio is of the means of several cells, they are the repetitions that its interval counts.
    """

    table: Text
    cell: Cell | None = None
    over: Cells | None = None
    under: Cells | None = None
    over_spread: Cell | None = None
    under_spread: Cell | None = None
    low: Cell | None = None
    high: Cell | None = None
    plus: float = 0.0
    times: float = 1.0
    order: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _one_form(self) -> Theirs:
        if (self.over is None) != (self.under is None):
            raise ValueError("`over` and `under` belong together")
        if (self.low is None) != (self.high is None):
            raise ValueError("`low` and `high` belong together")
        forms = [self.cell is not None, self.over is not None, bool(self.order)]
        if sum(forms) != 1:
            raise ValueError("give one of `cell`, `over` with `under`, or `order`")
        several = len(self.over or ()) > 1 or len(self.under or ()) > 1
        if several and (self.over_spread or self.under_spread):
            raise ValueError("several cells have their own spread; leave `*_spread` out")
        return self

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every published number that this figure is made of."""
        named = (self.cell, self.over_spread, self.under_spread, self.low, self.high)
        several = (*(self.over or ()), *(self.under or ()))
        return (*several, *(cell for cell in named if cell is not None))


class Pick(Record):
    """Which line of a result: what is absent here is as in the `ours` around it."""

    benchmark: str = ""
    metric: str = ""
    target: str = ""
    factors: dict[str, Any] = Field(default_factory=dict)


class Ours(Record):
    """What of our result answers: a metric, a ratio of two, or an order of several.

    spread: the ratio of how much the two vary, instead of the ratio of the two. times: from our
    unit into the study's.
    """

    benchmark: Text
    metric: Text
    target: str = ""
    factors: dict[str, Any] = Field(default_factory=dict)
    over: Pick | None = None
    under: Pick | None = None
    spread: bool = False
    order: dict[str, Pick] = Field(default_factory=dict)
    times: float = 1.0

    @model_validator(mode="after")
    def _one_form(self) -> Ours:
        if (self.over is None) != (self.under is None):
            raise ValueError("`over` and `under` belong together")
        if self.over is not None and self.order:
            raise ValueError("give `over` with `under`, or `order`")
        if self.spread and self.over is None:
            raise ValueError("`spread` compares two: give `over` and `under`")
        return self


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

    The whole interval of `ours` has to lie at or above `at_least`, in its unit times `ours.times`.
    """

    claim: Text
    ours: Ours
    at_least: float
    unit: str = ""

    @model_validator(mode="after")
    def _a_value(self) -> Control:
        if self.ours.over is not None or self.ours.order:
            raise ValueError("a control is one value: leave out `over`, `under` and `order`")
        return self


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

    @model_validator(mode="after")
    def _here_or_not(self) -> Part:
        if bool(self.plan) == bool(self.not_yet):
            raise ValueError(f"{self.name}: give either `plan` or `not_yet`")
        if self.plan and set(self.scales) != set(SCALES):
            raise ValueError(f"{self.name}: say what each scale sets: {', '.join(SCALES)}")
        if not self.plan and (self.scales or any(m.ours for m in self.comparisons)):
            raise ValueError(f"{self.name}: without a plan there is nothing of ours to compare")
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
