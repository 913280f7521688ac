"""Which figure of a study, and which line of a result: how study.yaml points at either."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from nephoscope.reading.fields import Record

Statistic = Literal["median", "mean", "stdev", "cv"]
"""Of a line's trials: its own estimate (the median over trials, or a percentile over all of them),
their mean, standard deviation, or coefficient of variation."""

Cell = tuple[str, str]
"""Row and column of a published number."""

Cells = Annotated[
    tuple[Cell, ...],
    Field(min_length=1),
    BeforeValidator(lambda v: (v,) if v and isinstance(v[0], str) else v),
]
"""One cell, or several whose mean is meant: the sets of one condition."""

Text = Annotated[str, Field(min_length=1)]


_PERCENTILE = re.compile(r"_p[0-9]{2,}(_|$)")


class Theirs(Record):
    """A figure of the study: a number, a ratio of two, or an order that it states.

    The figure is `plus + times * number`, so that '0.7 % more' becomes the ratio 1.007. Where a
    ratio is of the means of several cells, they are the repetitions that its interval counts.
    says: a direction that the text or a picture gives without a number.
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
    says: Literal["more", "less"] | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Theirs:
        if (self.over is None) != (self.under is None):
            raise ValueError("`over` and `under` belong together")
        if (self.low is None) != (self.high is None):
            raise ValueError("`low` and `high` belong together")
        forms = [self.cell is not None, self.over is not None, bool(self.order), bool(self.says)]
        if sum(forms) != 1:
            raise ValueError("give one of `cell`, `over` with `under`, `order`, or `says`")
        several = len(self.over or ()) > 1 or len(self.under or ()) > 1
        if several and (self.over_spread or self.under_spread):
            raise ValueError("several cells have their own spread; leave `*_spread` out")
        return self

    @property
    def plain(self) -> Cell | None:
        """The published number that is the figure as it stands; None where it is made of some."""
        return self.cell if (self.plus, self.times) == (0.0, 1.0) else None

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
    statistic: Statistic | None = None


class Ours(Record):
    """What of our result answers: a metric, a ratio of two, or an order of several.

    spread: the ratio of how much the two vary, instead of the ratio of the two. difference: over
    less under, for what may be zero. times: from our unit into the study's.
    """

    benchmark: Text
    metric: Text
    target: str = ""
    factors: dict[str, Any] = Field(default_factory=dict)
    statistic: Statistic = "median"
    over: Pick | None = None
    under: Pick | None = None
    spread: bool = False
    difference: bool = False
    order: dict[str, Pick] = Field(default_factory=dict)
    times: float = 1.0

    @model_validator(mode="after")
    def _one_form(self) -> Ours:
        if (self.over is None) != (self.under is None):
            raise ValueError("`over` and `under` belong together")
        if self.over is not None and self.order:
            raise ValueError("give `over` with `under`, or `order`")
        if (self.spread or self.difference) and self.over is None:
            raise ValueError("`spread` and `difference` compare two: give `over` and `under`")
        if self.spread and self.difference:
            raise ValueError("give one of `spread` and `difference`")
        if self.statistic != "median":
            if self.over is not None or self.order:
                raise ValueError("a `statistic` is of one line: leave out `over` and `order`")
            if _PERCENTILE.search(self.metric):
                raise ValueError(f"{self.metric} is a percentile, and percentiles have no mean")
        return self
