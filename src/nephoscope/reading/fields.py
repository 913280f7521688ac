"""Field types that every file of a user's shares: names, times, sizes, rates, shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from nephoscope import limits, units
from nephoscope.errors import UsageError

NAME = r"^[a-z0-9][a-z0-9_-]{0,39}$"


class Record(BaseModel):
    """Base of every record that a file gives: frozen, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


def read_by(parse: Callable[[str], float], scale: float = 1.0) -> BeforeValidator:
    """Reads a text with a unit; anything else is left to the field's own type."""

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return parse(value) * scale
        except UsageError as error:
            raise ValueError(f"{error.message} {error.hint}") from error

    return BeforeValidator(read)


def number_or_text(bounds: dict[str, float], unit: str, example: str) -> WithJsonSchema:
    """Returns what editors accept: a number within bounds, or a text with a unit."""
    number = {"type": "number", **bounds}
    text = {"type": "string", "pattern": rf"^\s*[0-9.]+\s*({unit})\s*$"}
    return WithJsonSchema({"anyOf": [number, text], "examples": [example]})


_TIME = "ns|us|µs|ms|s|m|min|h|d"

Seconds = Annotated[
    float,
    read_by(units.parse_duration_ns, 1e-9),
    Field(gt=0, le=limits.SECONDS),
    number_or_text({"exclusiveMinimum": 0, "maximum": limits.SECONDS}, _TIME, "60s"),
]
Ratio = Annotated[
    float,
    read_by(units.parse_ratio),
    Field(gt=0, lt=1),
    number_or_text({"exclusiveMinimum": 0, "exclusiveMaximum": 1}, "%?", "3%"),
]
Count = Annotated[int, Field(strict=True)]

_BITS = "[kKmMgG]?bit/s"
_BYTES = "([kKmMgGtT]i?)?[bB]?"

Delay = Annotated[
    float,
    read_by(units.parse_duration_ns, 1e-9),
    Field(ge=0, le=60),
    number_or_text({"minimum": 0, "maximum": 60}, _TIME, "50ms"),
]
"""Seconds on the way; a bare number is seconds. More than a minute is a mistake in the unit."""

Part = Annotated[
    float,
    read_by(units.parse_ratio),
    Field(ge=0, le=1),
    number_or_text({"minimum": 0, "maximum": 1}, "%?", "2%"),
]
"""As Ratio, but none and all are values too."""

LineRate = Annotated[
    float,
    read_by(units.parse_bits_per_s),
    Field(ge=8_000, le=400e9),
    number_or_text({"minimum": 8_000, "maximum": 400e9}, _BITS, "47Mbit/s"),
]
DiskRate = Annotated[
    float,
    read_by(units.parse_bytes_per_s),
    Field(ge=4096, le=1e12),
    number_or_text({"minimum": 4096, "maximum": 1e12}, f"{_BYTES}/s", "20MiB/s"),
]
Size = Annotated[
    int,
    read_by(units.parse_bytes),
    Field(gt=0, le=1 << 50),
    number_or_text({"exclusiveMinimum": 0, "maximum": 1 << 50}, _BYTES, "256MiB"),
]
