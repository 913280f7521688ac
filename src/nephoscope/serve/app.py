"""The web application: routes, error responses, and the guard around them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from nephoscope import __version__
from nephoscope.errors import NephoscopeError
from nephoscope.serve import openapi, routes_runs, routes_server
from nephoscope.serve.answers import failure
from nephoscope.serve.dashboard import Dashboard, respond
from nephoscope.serve.guard import Guard, Refusal
from nephoscope.serve.launch import RunInProgress
from nephoscope.serve.settings import ServerSettings
from nephoscope.serve.worker import status_of

DESCRIPTION = "Stored runs and runs in progress. Every document is that of `--json`."


def make_app(settings: ServerSettings) -> ASGIApp:
    """Returns the ASGI application of a server."""
    dashboard = Dashboard(settings)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await dashboard.workers.close()

    app = FastAPI(
        title="Nephoscope",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        openapi_url="/api/openapi.json",
        # The pages of FastAPI load scripts from another server.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.dashboard = dashboard
    app.openapi = lambda: openapi.describe(app)  # type: ignore[method-assign]
    app.include_router(routes_runs.router)
    app.include_router(routes_server.router)
    app.add_exception_handler(NephoscopeError, _on_error)
    app.add_exception_handler(Refusal, _on_refusal)
    app.add_exception_handler(RequestValidationError, _on_wrong_request)
    app.add_exception_handler(HTTPException, _on_http_error)
    return Guard(app, settings, dashboard.access)


async def _on_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, NephoscopeError)
    status = 409 if isinstance(error, RunInProgress) else status_of(error)
    return respond(failure(status, error.message, error.hint))


async def _on_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    response = respond(failure(error.status, error.body["error"], error.body["hint"]))
    response.headers.update(error.headers)
    return response


async def _on_wrong_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    name = first["loc"][-1] if first["loc"] else "request"
    return respond(failure(400, f"{name}: {first['msg']}.", "See /api/openapi.json."))


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return respond(failure(error.status_code, f"{error.detail}."))
