"""Documents held to JSON schemas.

A plan's schema has a branch for each benchmark: one written in Python takes seconds.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema_rs
from jsonschema_rs import ValidationError

from nephoscope.cli.kit import documents
from nephoscope.report import report_files

__all__ = ["ValidationError", "check_schema", "commands_schema", "result_schema", "validate"]

result_schema = cache(report_files.result_schema)
"""The schema of a run's result; made once, from all features."""

commands_schema = cache(documents.commands_schema)
"""The schema of the documents of commands, which takes seconds too."""


def validate(document: Any, schema: Any) -> None:
    """Raises ValidationError where a document, as it is printed, does not keep to a schema."""
    jsonschema_rs.validate(schema, json.loads(json.dumps(document)))


def check_schema(schema: Any) -> None:
    """Raises ValidationError where a schema is none."""
    jsonschema_rs.meta.validate(schema)
