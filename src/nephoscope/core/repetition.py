"""How often a benchmark of a plan is repeated, as plain values: of the plan and of stored runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def changed(repeat: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the `repeat` of a plan with the changes of one of its benchmarks."""
    merged = {**repeat, **changes}
    # A benchmark that only lowers `max` (or only raises `min`) means both.
    if "min" not in changes:
        merged["min"] = min(merged["min"], merged["max"])
    if "max" not in changes:
        merged["max"] = max(merged["max"], merged["min"])
    return merged
