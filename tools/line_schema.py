"""JSON Schema of the lines that the probe writes, for sample.schema.json."""

from __future__ import annotations

from typing import Any


def line_schema() -> dict[str, Any]:
    """Returns the schema of one line: a sample, `done` or `error`."""
    factors = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
    count = {"type": "integer", "minimum": 0}
    sample = {
        "type": "object",
        "description": "One observed value of a metric; a document metric has no value.",
        "properties": {
            "metric": {"type": "string"},
            "value": {"type": "number"},
            "count": {"type": "integer", "minimum": 1},
            "at_ns": {**count, "description": "Nanoseconds since the measured part began."},
            "factors": factors,
            "document": {"type": ["object", "array"]},
        },
        "required": ["metric", "count", "at_ns"],
        "oneOf": [{"required": ["value"]}, {"required": ["document"]}],
        "additionalProperties": False,
    }
    done = {
        "type": "object",
        "properties": {
            "started_wall_ns": {
                **count,
                "description": "Wall clock when the measured part began, ns since the epoch.",
            },
            "elapsed_ns": {**count, "description": "Nanoseconds from then to the end."},
            "samples": {**count, "description": "Sample lines before this one."},
            "counters": {
                "type": "object",
                "description": "The machine's counters over the trial; null where it hides them.",
                "properties": {
                    "spare_missing": {
                        "type": ["string", "null"],
                        "description": "Why no spare CPU was watched; null where one was.",
                    }
                },
                "additionalProperties": {"type": ["number", "null"]},
            },
            "notes": {"type": "array", "items": {"type": "string"}},
            "served": {"type": "object", "description": "What a far side counted."},
        },
        "required": ["started_wall_ns", "elapsed_ns", "samples", "counters"],
        "additionalProperties": False,
    }
    tool = {
        "type": "object",
        "description": "Of `wrap`: what the program said, and when how much of it was there.",
        "properties": {
            "program": {"type": "string"},
            "exit": {"type": ["integer", "null"]},
            "signal": {"type": ["integer", "null"]},
            "stdout": {"type": "string"},
            "stderr": {"type": "string", "description": "Its beginning."},
            "stderr_bytes": count,
            "marks": {
                "type": "array",
                "description": "Nanoseconds since the measured part began, bytes of stdout then.",
                "items": {"type": "array", "items": count, "minItems": 2, "maxItems": 2},
            },
        },
        "required": ["program", "exit", "signal", "stdout", "stderr", "stderr_bytes", "marks"],
        "additionalProperties": False,
    }
    failure = {
        "type": "object",
        "properties": {key: {"type": "string"} for key in ("name", "message", "hint")},
        "required": ["name", "message", "hint"],
        "additionalProperties": False,
    }
    ready = {
        "type": "object",
        "description": "With --control: prepared, waiting for `go`; or a server and where it is.",
        "properties": {
            "pid": {"type": "integer", "minimum": 1},
            "wall_ns": {**count, "description": "Wall clock there, ns since the epoch."},
            "address": {"type": "string"},
            "port": {"type": "integer", "minimum": 1, "maximum": 65535},
        },
        "required": ["pid", "wall_ns"],
        "additionalProperties": False,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of nephoscope-probe run, serve or wrap",
        "oneOf": [
            sample,
            {"type": "object", "properties": {"ready": ready}, "required": ["ready"]},
            {"type": "object", "properties": {"tool": tool}, "required": ["tool"]},
            {"type": "object", "properties": {"done": done}, "required": ["done"]},
            {"type": "object", "properties": {"error": failure}, "required": ["error"]},
        ],
    }
