"""The OpenAPI description: each route with the JSON Schema of its document.

Schemas come from the records of the command line's documents; they are computed when the
description is first asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from nephoscope.cli.kit.command import Document
from nephoscope.cli.kit.documents import documents
from nephoscope.cli.kit.named import Kind
from nephoscope.core.model import TrialStatus
from nephoscope.features.load.records import CapacityResult
from nephoscope.serve import queries
from nephoscope.store.listing import StoredRunRow

JSON = "application/json"
COMMANDS = "/api/v1/commands"


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
class TrialPage:
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
    """The samples of a metric in the trials of a run. label: the metric with its setting."""

    run: str
    label: str
    unit: str
    samples: int
    trials: tuple[TrialSamples, ...]


@dataclass(frozen=True, slots=True)
class RunSearch:
    """The search for a capacity to which a run belongs; None where it belongs to none."""

    run: str
    search: CapacityResult | None


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
class Queries:
    """Commands that requests may call -> parameter -> kind; routes of others; those excluded."""

    queries: Mapping[str, Mapping[str, str]]
    elsewhere: Mapping[str, str]
    excluded: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """Why a request is refused, and what to do."""

    error: str
    hint: str


_OWN: dict[str, Document] = {}
"""Documents of the routes that are no documents of the command line, by name."""


def answers_with(
    document: type[Any] | str | None, content_type: str = JSON, *, statuses: Sequence[int] = (200,)
) -> dict[str, Any]:
    """Returns the parameters of a route whose response is such a document: a record, or the name of
    a document of the command line. statuses: with which it comes."""
    name = document if isinstance(document, str) or document is None else _own(document)
    responses = _responses([] if name is None else [name], content_type)
    stated = responses.pop(200)
    responses |= dict.fromkeys(statuses, stated)
    return {"responses": responses, "response_model": None}


def _own(record: type[Any]) -> str:
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", record.__name__).lower()
    _OWN[name] = Document(name, record)
    return name


def _responses(names: Sequence[str], content_type: str = JSON) -> dict[int | str, Any]:
    schemas = [_reference(name) for name in names]
    schema = {"oneOf": schemas} if len(schemas) > 1 else next(iter(schemas), {})
    content = {content_type: {"schema": schema}}
    return {
        200: {"content": content, "description": "The document."},
        **{
            status: {
                "description": text,
                "content": {JSON: {"schema": _reference(_own(RefusedRequest))}},
            }
            for status, text in _REFUSED.items()
        },
    }


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


_REFUSED = {
    400: "The request is wrong.",
    401: "The token is missing or wrong.",
    404: "There is no such thing.",
    503: "The analysis has to wait.",
}


@cache
def schemas() -> dict[str, Any]:
    """Returns the schemas of all documents by name."""
    definitions: dict[str, Any] = {}
    for name, document in {**documents(), **_OWN}.items():
        schema = document.schema()
        definitions |= schema.pop("$defs", {})
        schema.pop("$schema", None)
        definitions[name] = schema
    # The only document without a version: proxies and the guard answer before any version is known.
    refused = definitions[_own(RefusedRequest)]
    refused["properties"].pop("schema_version")
    refused["required"].remove("schema_version")
    moved: dict[str, Any] = json.loads(
        json.dumps(definitions).replace('"#/$defs/', '"#/components/schemas/'),
        object_hook=_without_prefix_items,
    )
    return moved


def _without_prefix_items(schema: dict[str, Any]) -> dict[str, Any]:
    """Describes pairs as arrays of two items of either type: few programs that read OpenAPI
    documents know `prefixItems`."""
    if isinstance(items := schema.pop("prefixItems", None), list):
        schema["items"] = {"anyOf": items}
    return schema


def describe(app: FastAPI) -> dict[str, Any]:
    """Returns the OpenAPI document of the application, with a path for each command."""
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    document["paths"] |= _paths_of_commands()
    for operations in document["paths"].values():
        for operation in operations.values():
            _state_refusals(operation["responses"])
    components = document.setdefault("components", {})
    components["schemas"] = {**components.get("schemas", {}), **schemas()}
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}, {}]
    return document


def _state_refusals(responses: dict[str, Any]) -> None:
    """Adds that every other status is a refusal; wrong parameters are 400 here, and not 422."""
    responses.pop("422", None)
    responses["default"] = {
        "description": "The request is refused.",
        "content": {JSON: {"schema": _reference(_own(RefusedRequest))}},
    }


def _paths_of_commands() -> dict[str, Any]:
    """Returns the paths of the commands that requests may call, with their parameters."""
    return {
        f"{COMMANDS}/{name.replace(' ', '/')}": {
            "get": {
                "summary": queries.command_of(name).get_short_help_str(200),
                "operationId": f"command_{name.replace(' ', '_').replace('-', '_')}",
                "parameters": [_parameter(key, kind) for key, kind in kinds.items()],
                "responses": {
                    str(status): response
                    for status, response in _responses(queries.documents_of(name)).items()
                },
            }
        }
        for name, kinds in queries.queries().items()
    }


def _parameter(name: str, kind: Kind) -> dict[str, Any]:
    value = {"type": "boolean" if kind == "flag" else "string"}
    return {"name": name, "in": "query", "description": kind, "schema": value}
