"""Checks a parameter's value against its declaration: type, unit, bounds.

The same rules as `Params::check` of the probe, with sizes and times in the units people write.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from nephoscope.catalog import ParamSpec
from nephoscope.core import units
from nephoscope.core.errors import UsageError


def convert_value(benchmark: str, param: ParamSpec, value: Any) -> Any:
    """Returns a value in the parameter's type and unit. UsageError names bound and value."""
    read = _read(param, param.type, value)
    if read is None:
        raw_text = json.dumps(value, default=str)
        raise UsageError(
            f"{benchmark}: {param.id} must be {_wanted(param)}, not {raw_text}."
            f"{_yaml_hint(param, value)}",
            f"It means: {param.doc}",
        )
    return read


def _read(param: ParamSpec, kind: str, value: Any) -> Any:
    """Returns a value of that type; None for any other."""
    if kind.endswith("_list"):
        if not isinstance(value, list):
            return None
        items = [_read(param, kind.removesuffix("_list"), item) for item in value]
        return None if None in items else items
    if kind in ("int", "float"):
        number = _number(param, value)
        if number is None or (kind == "int" and number != int(number)):
            return None
        return int(number) if kind == "int" else float(number)
    if kind == "bool":
        return value if isinstance(value, bool) else None
    return value if isinstance(value, str) and (kind == "text" or value in param.choices) else None


def _number(param: ParamSpec, value: Any) -> float | None:
    """A finite number; a text may carry the unit of its parameter."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        if isinstance(value, str):
            value = _UNIT_READERS.get(param.unit, float)(value)
    except (UsageError, ValueError):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    low, high = param.min, param.max
    inside = (low is None or value >= low) and (high is None or value <= high)
    return value if inside else None


_UNIT_READERS: Mapping[str, Callable[[str], float]] = {
    # A bare number in a text is in the parameter's own unit, as it is without quotes.
    "bytes": lambda text: units.parse_bytes(text, bare="B"),
    "ns": lambda text: units.parse_duration_ns(text, bare="ns"),
    "ratio": units.parse_ratio,
}
_EXAMPLES = {"bytes": ", such as 64MiB", "ns": ", such as 100ms"}


def _wanted(param: ParamSpec) -> str:
    low, high = (_bound(value, param.unit) for value in (param.min, param.max))
    bounds = "" if param.min is None else f" from {low} to {high}"
    unit = _EXAMPLES.get(param.unit, "")
    return {
        "int": f"a whole number{bounds}{unit}",
        "float": f"a number{bounds}{unit}",
        "bool": "true or false",
        "choice": f"one of {', '.join(param.choices)}",
        "text": "a text",
        "text_list": "a list of texts",
        "int_list": f"a list of whole numbers{bounds}{unit}",
        "choice_list": f"a list of words out of {', '.join(param.choices)}",
    }[param.type]


def _bound(value: float | None, unit: str) -> str:
    return "any" if value is None else units.written(value, unit)


def _yaml_hint(param: ParamSpec, value: Any) -> str:
    """Returns a hint where YAML reads the value as another type than meant."""
    if param.type in ("text", "choice") and isinstance(value, bool | int | float):
        return " Put it in quotes if it is meant as a text."
    if param.type == "text_list" and isinstance(value, list):
        return " Put numbers and words such as true in quotes."
    if param.type == "bool" and str(value).lower() in ("yes", "no", "on", "off"):
        return " A plan says true and false."
    return ""
