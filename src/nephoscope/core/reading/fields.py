"""Field types that every file of a user's shares: names, times, sizes, rates, shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
)

from nephoscope.core import limits, units
from nephoscope.core.errors import UsageError

NAME = r"^[a-z0-9][a-z0-9_-]{0,39}$"


class Record(BaseModel):
    """Base of every record that a file gives: frozen, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, defer_build=True)


BY_HAND = "written by hand"
"""Context of a validation: a person wrote the values, so that a number needs its unit."""


def read_by(
    parse: Callable[[str], float], scale: float = 1.0, *, needs_unit: bool = True
) -> BeforeValidator:
    """Reads a text with a unit; anything else is left to the field's own type.

    needs_unit: numbers that a person wrote (`BY_HAND`) are read as texts, because most parsers
    refuse those without a unit. Those of programs and of stored runs are in the field's own unit.
    """

    def read(value: Any, info: ValidationInfo) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if needs_unit and is_number and info.context == BY_HAND and value >= 0:
            value = str(value)
        if not isinstance(value, str):
            return value
        try:
            return parse(value) * scale
        except UsageError as error:
            raise ValueError(str(error)) from error

    return BeforeValidator(read)


_KEYWORDS = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}
"""Bounds as pydantic and as JSON Schema call them."""


def number_or_text(
    parse: Callable[[str], float],
    unit: str,
    example: str,
    scale: float = 1.0,
    *,
    needs_unit: bool = True,
    **bounds: Any,
) -> tuple[BeforeValidator, Any, WithJsonSchema]:
    """Returns what makes a field of a number within bounds, or of a text with a unit.

    unit: pattern of the units. example: a text for editors. scale, parse, needs_unit: as of
    `read_by`.
    """
    number = {"type": "number"} | {_KEYWORDS[name]: bound for name, bound in bounds.items()}
    text = {"type": "string", "pattern": rf"^\s*([0-9.]+\s*({unit})\s*)+$"}
    schema = WithJsonSchema({"anyOf": [number, text], "examples": [example]})
    return read_by(parse, scale, needs_unit=needs_unit), Field(**bounds), schema


_TIME = (units.parse_duration_ns, "ns|us|µs|ms|s|m|min|h|d|w")
_RATIO = (units.parse_ratio, "%?")
_BYTES = "([kKmMgGtT]i?)?[bB]?"

Seconds = Annotated[float, *number_or_text(*_TIME, "60s", 1e-9, gt=0, le=limits.SECONDS)]
Ratio = Annotated[float, *number_or_text(*_RATIO, "3%", needs_unit=False, gt=0, lt=1)]
Count = Annotated[int, Field(strict=True)]

Delay = Annotated[float, *number_or_text(*_TIME, "50ms", 1e-9, ge=0, le=60)]
"""Seconds on the way; a bare number is seconds. More than a minute is a mistake in the unit."""

Part = Annotated[float, *number_or_text(*_RATIO, "2%", needs_unit=False, ge=0, le=1)]
"""As Ratio, but none and all are values too."""

LineRate = Annotated[
    float,
    *number_or_text(
        units.parse_bits_per_s,
        "[kKmMgG]?([bB]it(/s|ps)?|b(/s|ps)?|B(/s|ps))",
        "47Mbit/s",
        ge=8_000,
        le=400e9,
    ),
]
DiskRate = Annotated[
    float, *number_or_text(units.parse_bytes_per_s, f"{_BYTES}/s", "20MiB/s", ge=4096, le=1e12)
]
Size = Annotated[int, *number_or_text(units.parse_bytes, _BYTES, "256MiB", gt=0, le=1 << 50)]
