"""The web application: routes, error responses, and the guard around them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import AsyncIterator, Callable

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from nephoscope import __version__
from nephoscope.core.errors import NephoscopeError
from nephoscope.httpd.guard import Guard
from nephoscope.httpd.responses import failure, failure_of
from nephoscope.httpd.settings import ServerSettings
from nephoscope.serve import openapi, routes_runs, routes_server
from nephoscope.serve.dashboard import Dashboard, respond

DESCRIPTION = "Stored runs and runs in progress. Every document is that of `--json`."


def make_app(settings: ServerSettings, started: Callable[[], None] = lambda: None) -> ASGIApp:
    """Returns the ASGI application of a server. started: called once requests are answered."""
    dashboard = Dashboard(settings)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        started()
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
    app.openapi = functools.cache(lambda: openapi.describe(app))  # type: ignore[method-assign]
    app.include_router(routes_runs.router)
    app.include_router(routes_server.router)
    app.add_exception_handler(NephoscopeError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_wrong_request)
    app.add_exception_handler(HTTPException, _on_http_error)
    return Guard(app, settings, dashboard.access)


async def _on_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, NephoscopeError)
    return respond(failure_of(error))


async def _on_wrong_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    name = first["loc"][-1] if first["loc"] else "request"
    return respond(failure(400, f"{name}: {first['msg']}.", "See /api/openapi.json."))


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return respond(failure(error.status_code, f"{error.detail}."))
