"""Selects a figure of a study, and a metric of a result: how study.yaml points at either."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from nephoscope.core.reading.fields import Record

Statistic = Literal["median", "mean", "stdev", "cv"]
"""Statistic of a metric's trials: its own estimate (the median over trials, or a percentile over
all requests), or their mean, standard deviation or coefficient of variation."""

Cell = tuple[str, str]
"""Row and column of a published number."""

Cells = Annotated[
    tuple[Cell, ...],
    Field(min_length=1),
    BeforeValidator(lambda v: (v,) if v and isinstance(v[0], str) else v),
]
"""One cell, or several that are repetitions of one condition and stand for their mean."""

Text = Annotated[str, Field(min_length=1)]

_PERCENTILE = re.compile(r"_p[0-9]{2,}(_|$)")
_BOTH_SIDES = "`numerator` and `denominator` belong together"


class PublishedFigure(Record):
    """A figure of the study: a number, a ratio of two, an order, or a direction.

    A number or ratio x counts as `offset + scale * x`, so that '0.7 % more' becomes the ratio
    1.007. Where a side of a ratio is several cells, these are the repetitions that its interval
    counts. direction: stated in the text or visible in a picture, without a number. bound: the
    study gives the number as a bound ("more than 17.4 hours").
    """

    table: Text
    cell: Cell | None = None
    numerator: Cells | None = None
    denominator: Cells | None = None
    numerator_spread: Cell | None = None
    denominator_spread: Cell | None = None
    low: Cell | None = None
    high: Cell | None = None
    offset: float = 0.0
    scale: float = 1.0
    order: tuple[str, ...] = ()
    direction: Literal["more", "less"] | None = None
    bound: Literal["at least", "at most"] | None = None

    @model_validator(mode="after")
    def _has_one_form(self) -> Self:
        if (self.numerator is None) != (self.denominator is None):
            raise ValueError(_BOTH_SIDES)
        if (self.low is None) != (self.high is None):
            raise ValueError("`low` and `high` belong together")
        forms = (self.cell, self.numerator, self.order, self.direction)
        if sum(bool(form) for form in forms) != 1:
            raise ValueError(
                "give one of `cell`, `numerator` with `denominator`, `order`, or `direction`"
            )
        several = len(self.numerator or ()) > 1 or len(self.denominator or ()) > 1
        if several and (self.numerator_spread or self.denominator_spread):
            raise ValueError("several cells have their own spread; leave `*_spread` out")
        if self.bound and not (self.cell or self.numerator):
            raise ValueError("a `bound` is a number: give `cell`, or `numerator` and `denominator`")
        return self

    @property
    def unchanged_cell(self) -> Cell | None:
        """The published number that is the figure as it stands; None where it is computed."""
        return self.cell if (self.offset, self.scale) == (0.0, 1.0) else None

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every published number of which this figure is made."""
        named = (self.cell, self.numerator_spread, self.denominator_spread, self.low, self.high)
        sides = (*(self.numerator or ()), *(self.denominator or ()))
        return (*sides, *(cell for cell in named if cell is not None))


class MetricSelection(Record):
    """Metric of a result; what is absent here is as in the surrounding `measured`."""

    benchmark: str = ""
    metric: str = ""
    target: str = ""
    factors: dict[str, Any] = Field(default_factory=dict)
    statistic: Statistic | None = None


class MeasuredFigure(Record):
    """The figure of a result that answers a published one: a metric, a ratio, or an order.

    spread: the ratio of the variation of both sides instead of the ratio of their values.
    difference: numerator minus denominator, for values that may be zero. fairness: Jain's index of
    both sides, 1 where they are equal and 0.5 where one has all. scale: from the metric's unit to
    the study's.
    """

    benchmark: Text
    metric: Text
    target: str = ""
    factors: dict[str, Any] = Field(default_factory=dict)
    statistic: Statistic = "median"
    numerator: MetricSelection | None = None
    denominator: MetricSelection | None = None
    spread: bool = False
    difference: bool = False
    fairness: bool = False
    order: dict[str, MetricSelection] = Field(default_factory=dict)
    scale: float = 1.0

    @model_validator(mode="after")
    def _has_one_form(self) -> Self:
        if (self.numerator is None) != (self.denominator is None):
            raise ValueError(_BOTH_SIDES)
        if self.numerator is not None and self.order:
            raise ValueError("give `numerator` with `denominator`, or `order`")
        contrasts = self.spread + self.difference + self.fairness
        if contrasts and self.numerator is None:
            raise ValueError(
                "`spread`, `difference` and `fairness` compare two: give `numerator` and "
                "`denominator`"
            )
        if contrasts > 1:
            raise ValueError("give one of `spread`, `difference` and `fairness`")
        if self.statistic != "median":
            if not self.is_single:
                raise ValueError("a `statistic` is of one metric: leave out ratio and `order`")
            if _PERCENTILE.search(self.metric):
                raise ValueError(f"{self.metric} is a percentile, and percentiles have no mean")
        return self

    @property
    def is_ratio(self) -> bool:
        """Whether this is one value over another, in times."""
        is_contrast = self.difference or self.fairness
        return self.numerator is not None and not is_contrast and self.scale == 1

    @property
    def is_single(self) -> bool:
        """Returns whether this is one value, and neither a ratio nor an order."""
        return self.numerator is None and not self.order
