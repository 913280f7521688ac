"""Numbers in a user's file that may have an interval: exact, bounded, or measured repeatedly."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Estimate
from nephoscope.core.reading.fields import Count, Ratio, Record, read_by
from nephoscope.stats.statistics import ratios


def _not_tiny(value: float) -> float:
    # Quotients of such numbers, and their powers, stay within the range of floating point.
    if value < 1e-12:
        raise ValueError(f"{value:g} is too small. Use 1e-12 or more.")
    return value


_ABOVE_0 = (Field(gt=0, le=1e15, allow_inf_nan=False), AfterValidator(_not_tiny))
Positive = Annotated[float, *_ABOVE_0]


def _parse_level(text: str) -> float:
    """A number of '1400', or a ratio of '99.9%'. Raises UsageError on anything else."""
    if text.strip().endswith("%"):
        return units.parse_ratio(text)
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"'{text}' is no number.", "Write 1400, or a ratio as 99.9%.") from None


Level = Annotated[float, read_by(_parse_level, needs_unit=False), *_ABOVE_0]
"""A number above zero; a text may be a percentage."""
NotNegative = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]


class Quantity(Record):
    """A number above zero. In a file: `5`, `99.9%`, `{value: 5, low: 4, high: 6}` or a list."""

    value: Level | None = Field(default=None, description="Value.")
    low: Level | None = Field(default=None, description="Lower bound of its interval.")
    high: Level | None = Field(default=None, description="Upper bound of its interval.")
    confidence: Ratio = Field(default=0.95, description="Confidence of the interval.")
    n: Annotated[Count, Field(ge=0)] = Field(default=0, description="Number of repetitions.")
    values: Annotated[tuple[Positive, ...], Field(max_length=100_000)] = Field(
        default=(), description="Values of repetitions, instead of a value."
    )

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, written: Any) -> Any:
        if isinstance(written, str | int | float) and not isinstance(written, bool):
            return {"value": written}
        return {"values": written} if isinstance(written, list | tuple) else written

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.value is None) == (not self.values):
            raise ValueError("a quantity has a value or a list of values. Use one of them.")
        if (self.low is None) != (self.high is None):
            raise ValueError("an interval has two ends. Add `low` and `high`.")
        if self.low is not None and self.high is not None:
            if self.value is None:
                raise ValueError("values have their own interval. Leave out `low` and `high`.")
            if not self.low <= self.value <= self.high:
                raise ValueError("low, value and high do not ascend. Use low <= value <= high.")
        return self

    def estimate(self, unit: str) -> Estimate:
        """Returns the value with its interval; of repetitions their geometric mean with t's."""
        if self.values:
            return ratios.geometric_mean(self.values, unit=unit, confidence=self.confidence)
        assert self.value is not None
        method = "as stated" if self.low is None else "interval as stated"
        return Estimate(self.value, self.low, self.high, self.confidence, self.n, unit, method)
