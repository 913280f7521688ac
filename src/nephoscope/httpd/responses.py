"""Responses of a server and refusals of requests, as bytes, before any framework sees them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, replace

from nephoscope.core.errors import Lacking, NephoscopeError, UnknownName, UsageError
from nephoscope.core.records import dataclass


@dataclass(frozen=True, slots=True)
class RenderedResponse:
    """An HTTP response of a worker."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


class Refusal(NephoscopeError):
    """A request that is not served: status, sentence, next step, headers of the response."""

    def __init__(self, status: int, message: str, hint: str = "", **headers: str) -> None:
        super().__init__(message, hint)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def failure(status: int, error: str, hint: str = "") -> RenderedResponse:
    """Returns a response that states an error."""
    return RenderedResponse(status, json.dumps({"error": error, "hint": hint}).encode())


def failure_of(error: NephoscopeError) -> RenderedResponse:
    """Returns the response that states an error."""
    if isinstance(error, Refusal):
        stated = failure(error.status, error.message, error.hint)
        return replace(stated, headers=error.headers)
    status = next((status for kind, status in _STATUSES.items() if isinstance(error, kind)), 500)
    return failure(status, error.message, error.hint)


_STATUSES = {UnknownName: 404, UsageError: 400, Lacking: 503}
