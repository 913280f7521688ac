"""Routes of the server itself: log-in, queries of the command line, schemas, the page."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Body, Request, Response

from nephoscope import __version__
from nephoscope.core import units
from nephoscope.core.errors import UnknownName
from nephoscope.httpd.access import COOKIE, SESSION_S
from nephoscope.httpd.guard import check_token, client_of, session_of
from nephoscope.serve import static_files
from nephoscope.serve.dashboard import Shared, json_response
from nephoscope.serve.openapi import COMMANDS, Files, Queries, Session, answers_with
from nephoscope.serve.queries import elsewhere, excluded, files_of, parameters_of, queries, words_of

router = APIRouter()
API = "/api/v1"


@router.get(f"{API}/session", **answers_with(Session))
async def session(request: Request, shared: Shared) -> Response:
    """Returns whether this client has to log in, and what the server allows."""
    token = shared.access.needs_token
    return json_response(
        {
            "needs_token": token,
            "logged_in": not token or shared.access.is_session(session_of(request.headers)),
            "allow_runs": shared.settings.allow_runs,
            "nephoscope": __version__,
            "scales": units.SCALES,
        }
    )


@router.post(f"{API}/session", status_code=204)
async def log_in(
    request: Request, shared: Shared, token: Annotated[str, Body(embed=True, max_length=200)]
) -> Response:
    """Opens a session for the token; its cookie is for this server and its own pages only."""
    check_token(shared.access, token, client_of(request.scope))
    response = Response(status_code=204)
    response.set_cookie(
        COOKIE,
        shared.access.open_session(),
        max_age=SESSION_S,
        httponly=True,
        samesite="strict",
        secure=shared.settings.tls is not None,
    )
    return response


@router.delete(f"{API}/session", status_code=204)
async def log_out(request: Request, shared: Shared) -> Response:
    """Ends the session."""
    shared.access.close_session(session_of(request.headers))
    response = Response(status_code=204)
    response.delete_cookie(COOKIE)
    return response


@router.get(COMMANDS, **answers_with(Queries))
async def commands() -> Response:
    """Lists the commands of the command line that can be called, with their parameters."""
    return json_response({"queries": queries(), "elsewhere": elsewhere(), "excluded": excluded()})


@router.get(f"{COMMANDS}/{{name:path}}", **answers_with(None))
async def command(name: str, request: Request, shared: Shared) -> Response:
    """Returns what a command prints with `--json`; words of its name are separated by `/`.

    Query parameters are its arguments and options, with the names of the command line; files are
    those of the folder of `--data`.
    """
    settings = shared.settings
    values = request.query_params.multi_items()
    words = words_of(name.replace("/", " "), values, settings.store.path, settings.data)
    # What depends on the store and on no file of the folder is the same until a run changes.
    kinds = parameters_of(name.replace("/", " "))
    is_stored = f"--store={settings.store.path}" in words and not any(
        kinds[key] in ("file", "contract", "source") for key, _ in values
    )
    version = (await shared.snapshot()).number if is_stored else None
    return await shared.analysed("command", {"words": words}, version)


@router.get(f"{API}/files", **answers_with(Files))
async def files(shared: Shared) -> Response:
    """Lists the files of the folder of `--data`."""
    names = await asyncio.to_thread(files_of, shared.settings.data)  # a folder may be large
    return json_response({"has_folder": shared.settings.data is not None, "files": names})


@router.get("/{path:path}", include_in_schema=False)
async def page(request: Request, path: str) -> Response:
    """Returns a file of the page."""
    file = static_files.load().get(path or static_files.INDEX)
    if file is None:
        raise UnknownName("There is nothing under this address.", "Begin at /.")
    cache = "max-age=31536000, immutable" if file.name_has_digest else "no-cache"
    headers = {"etag": file.etag, "cache-control": cache}
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers, media_type=file.content_type)
