"""What the schemas of `--json` are made of."""

from __future__ import annotations

from typing import Any

NUMBER_OR_NULL = {"type": ["number", "null"]}
TEXT_OR_NULL = {"type": ["string", "null"]}
TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
RATIO = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
COUNT = {"type": "integer", "minimum": 0}


def object_of(properties: dict[str, Any], *, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """An object with these properties and no others; all required but the optional ones."""
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """The object or null."""
    return {**schema, "type": ["object", "null"]}


def list_of(properties: dict[str, Any]) -> dict[str, Any]:
    """An array of such objects."""
    return {"type": "array", "items": object_of(properties)}


def factors() -> dict[str, Any]:
    """Factor to level."""
    return {
        "type": "object",
        "description": "Factor to level: what the plan, or the benchmark itself, varied.",
        "additionalProperties": {"type": ["string", "number", "boolean", "null", "array"]},
    }


def estimate() -> dict[str, Any]:
    """The properties of an estimate without its note."""
    return {
        "value": {"type": "number"},
        "low": {**NUMBER_OR_NULL, "description": "null: the interval has no such side."},
        "high": NUMBER_OR_NULL,
        "confidence": RATIO,
        "n": {**COUNT, "description": "Independent repetitions (trials), not requests."},
        "unit": TEXT,
        "method": TEXT,
    }


def full_estimate(description: str = "") -> dict[str, Any]:
    """An estimate with its note, or null."""
    told = {"description": description} if description else {}
    return {**nullable(object_of({**estimate(), "note": TEXT})), **told}
