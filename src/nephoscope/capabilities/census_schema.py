"""The JSON Schema of what `census --json` prints (contracts/census.schema.json)."""

from __future__ import annotations

from typing import Any

from nephoscope.capabilities import schema as parts

_NUMBER_OR_NULL = {"type": ["number", "null"]}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_COUNT = {"type": "integer", "minimum": 0}
_RATIO = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}


def census_schema() -> dict[str, Any]:
    """Schema of a census."""
    return {
        "$schema": parts.DRAFT,
        "title": "Census of CPU models by Nephoscope",
        **parts.object_of(
            {
                "confidence": _RATIO,
                "machines": {**_COUNT, "description": "Number of machines, each counted once."},
                "runs": _COUNT,
                "sources": _TEXTS,
                "identity": {**_TEXT_OR_NULL, "description": "Definition of a machine."},
                "types": parts.list_of(_type()),
                "flags": {**_TEXTS, "description": "Contradictions."},
                "left_out": _TEXTS,
                "notes": {**_TEXTS, "description": "Notes of the sources on their rows."},
            }
        ),
    }


def _type() -> dict[str, Any]:
    clock = {"clock_hz": _NUMBER_OR_NULL}
    group = {"name": _TEXT, "machines": _COUNT, "models": parts.list_of(_share())}
    return {
        "instance_type": _TEXT,
        "machines": _COUNT,
        "models": parts.list_of({**_share(), **clock}),
        "uncounted": parts.list_of({"model": _TEXT, **clock}),
        "unseen_at_most": {
            **_NUMBER_OR_NULL,
            "description": "Upper bound of the total share of unseen models.",
        },
        "zones": parts.list_of(group),
        "hours": parts.list_of(group),
        "benchmarks": parts.list_of(_benchmark()),
        "notes": _TEXTS,
    }


def _share() -> dict[str, Any]:
    return {"model": _TEXT, "machines": _COUNT, "share": parts.full_estimate()}


def _benchmark() -> dict[str, Any]:
    speed = {
        "model": _TEXT,
        "ratio": {
            **parts.full_estimate(),
            "description": "Ratio to the slowest model; above 1 is faster.",
        },
        "unit": {
            "enum": ["machines", "runs", "trials", None],
            "description": "Unit of repetition.",
        },
        "machines": _COUNT,
        "runs": _COUNT,
        "trials": _COUNT,
        "note": _TEXT,
    }
    chance = {
        "at_least": {"type": "number"},
        "models": _TEXTS,
        "share": parts.full_estimate(),
    }
    expected = parts.object_of(
        {
            "mean": parts.full_estimate(),
            "chances": parts.list_of(chance),
            "left_out": {**_TEXTS, "description": "Models that were counted but never measured."},
        }
    )
    return {
        "benchmark": _TEXT,
        "metric": _TEXT_OR_NULL,
        "factors": {"type": "object"},
        "source": _TEXT,
        "speeds": parts.list_of(speed),
        "expected": {**expected, "type": ["object", "null"]},
        "refused": {**_TEXT_OR_NULL, "description": "Reason why no expected speed is available."},
    }
