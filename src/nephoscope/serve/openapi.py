"""The OpenAPI description: each route with the JSON Schema of its document.

Schemas come from the records of the command line's documents; they are computed when the
description is first asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from nephoscope.core.documents import schema_of
from nephoscope.core.model import TrialStatus
from nephoscope.store.listing import StoredRunRow

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class RunList:
    """A part of the runs that meet the conditions, newest first. total: all that meet them.

    complete: every run of the store was read already.
    """

    store: str
    runs: tuple[StoredRunRow, ...]
    total: int
    offset: int
    complete: bool


@dataclass(frozen=True, slots=True)
class TrialRows:
    """A part of a run's trials in the order of execution."""

    run: str
    total: int
    offset: int
    trials: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class TrialSamples:
    """The samples of a metric in one trial. points: [at_ns, value, count]; empty where the answer
    has no room for them. samples: their number."""

    trial: str
    round: int
    status: TrialStatus
    reasons: tuple[str, ...]
    started_at: float
    elapsed_ns: int
    metric: str
    samples: int
    points: tuple[tuple[int, float, int], ...]


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples of a metric in the trials of a run."""

    run: str
    unit: str
    samples: int
    trials: tuple[TrialSamples, ...]


@dataclass(frozen=True, slots=True)
class LoginState:
    """Whether a client has to log in. allow_runs: whether requests may start and stop runs.

    scales: unit -> divisors and labels in which people read it, the largest first.
    """

    needs_token: bool
    logged_in: bool
    allow_runs: bool
    nephoscope: str
    scales: Mapping[str, tuple[tuple[float, str], ...]]


@dataclass(frozen=True, slots=True)
class StartedRun:
    """The run that a request started."""

    run: str


@dataclass(frozen=True, slots=True)
class Files:
    """Names of files that requests may name."""

    has_folder: bool
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueryList:
    """Commands that requests may call -> parameter -> kind; routes of others; those excluded."""

    queries: Mapping[str, Mapping[str, str]]
    elsewhere: Mapping[str, str]
    excluded: Mapping[str, str]


def answers_with(name: str | None, content_type: str = JSON) -> dict[str, Any]:
    """Returns the parameters of a route whose response is a document of this name."""
    schema = {} if name in (None, "any") else {"$ref": f"#/components/schemas/{name}"}
    content = {content_type: {"schema": schema}}
    refusals = {
        status: {"description": text, "content": {JSON: {"schema": _REFUSAL}}}
        for status, text in _REFUSED.items()
    }
    return {
        "responses": {200: {"content": content, "description": "The document."}, **refusals},
        "response_model": None,
    }


_REFUSAL = {"$ref": "#/components/schemas/refusal"}
_REFUSED = {
    400: "The request is wrong.",
    401: "The token is missing or wrong.",
    404: "There is no such thing.",
    503: "The analysis has to wait.",
}


@lru_cache(maxsize=1)
def schemas() -> dict[str, Any]:
    """Returns the schemas of all documents by name."""
    from nephoscope.cli.commands import json_documents
    from nephoscope.features.comparison.result import Comparisons
    from nephoscope.report import report_files
    from nephoscope.serve.measured import LineOfTarget
    from nephoscope.serve.overview import Overview

    records: dict[str, type[Any]] = {
        **json_documents.RECORDS,
        "compare": Comparisons,
        "overview": Overview,
        "run_list": RunList,
        "trials": TrialRows,
        "samples": Samples,
        "session": LoginState,
        "started_run": StartedRun,
        "files": Files,
        "queries": QueryList,
        "line": LineOfTarget,
    }
    definitions: dict[str, Any] = {}
    documents = {name: schema_of(record, name) for name, record in records.items()}
    documents["result"] = report_files.result_schema()
    for name, schema in documents.items():
        definitions |= schema.pop("$defs", {})
        schema.pop("$schema", None)
        definitions[name] = schema
    row = definitions.pop("line")
    definitions["lines"] = {
        "type": "object",
        "properties": {"lines": {"type": "array", "items": row}},
        "required": ["lines"],
    }
    text = {"type": "string"}
    definitions["refusal"] = {
        "type": "object",
        "properties": {"error": text, "hint": text},
        "required": ["error", "hint"],
    }
    moved: dict[str, Any] = json.loads(
        json.dumps(definitions).replace('"#/$defs/', '"#/components/schemas/')
    )
    return moved


def describe(app: FastAPI) -> dict[str, Any]:
    """Returns the OpenAPI document of the application."""
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    components = document.setdefault("components", {})
    components["schemas"] = {**components.get("schemas", {}), **schemas()}
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}, {}]
    return document
