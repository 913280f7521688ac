"""What the routes of one server share."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping
from typing import Annotated, Any

from fastapi import Depends, Request, Response

from nephoscope.core.errors import UnknownName
from nephoscope.httpd.access import Access
from nephoscope.httpd.responses import RenderedResponse, failure
from nephoscope.httpd.settings import RenewedToken, ServerSettings
from nephoscope.serve.answers import NOT_NOW, document
from nephoscope.serve.launch import Launcher
from nephoscope.serve.live import Live
from nephoscope.serve.overview import overview
from nephoscope.serve.workers import Workers
from nephoscope.store import WITHOUT_RESULTS, StoredRun
from nephoscope.store.index import IndexedRun, RunIndex, Snapshot


class Dashboard:
    """The state of a server: list of runs, workers, streams, sessions."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.index = RunIndex(settings.store)
        self.workers = Workers(settings.store.path)
        self.live = Live()
        self.access = Access(settings.token, renewed=RenewedToken(settings.token_file))
        self.launcher = Launcher(settings.store.path, settings.data)
        self.trends = asyncio.Lock()
        """Held while trends are computed: however many pages ask, one worker is enough."""
        self._overview: tuple[Snapshot, RenderedResponse] | None = None

    async def snapshot(self) -> Snapshot:
        """Returns the list of runs."""
        return await asyncio.to_thread(self.index.snapshot)

    async def overview(self) -> RenderedResponse:
        """Returns the overview's document, made again only when a run changed."""
        return await asyncio.to_thread(self._overview_document)

    def _overview_document(self) -> RenderedResponse:
        snapshot = self.index.snapshot()
        known = self._overview
        if known is None or known[0] is not snapshot:
            content = overview(snapshot, self.settings.store)
            known = self._overview = (snapshot, document(content))
        return known[1]

    async def run(self, name: str) -> IndexedRun:
        """Returns a run by its whole id, or `latest`. UnknownName where there is none."""
        snapshot = await self.snapshot()
        run = snapshot.by_id.get(name)
        read, grows = -1, name != "latest"
        # It may have begun a moment ago, or the list is still being read.
        while run is None and grows:
            newer = await asyncio.to_thread(self.index.snapshot, fresh=True)
            run = newer.by_id.get(name)
            grows = not newer.is_complete and len(newer.by_id) > read
            read = len(newer.by_id)
        if run is None and name == "latest" and snapshot.runs:  # as the command line has it
            usable = (run for run in snapshot.runs if run.row.state not in WITHOUT_RESULTS)
            run = next(usable, snapshot.runs[0])
        if run is None:
            raise UnknownName(f"There is no run '{name[:80]}'.", "See /api/v1/runs.")
        return run

    def stored(self, run: IndexedRun) -> StoredRun:
        """Returns a run of the list as it is stored."""
        return StoredRun(self.settings.store.runs_path / run.row.id)

    async def may_analyse(self) -> bool:
        """States whether an analysis would disturb no run on this machine."""
        return self.settings.analyse_during_runs or (await self.snapshot()).measured_here is None

    async def analysed(
        self, function: str, arguments: Mapping[str, Any], version: Hashable = None
    ) -> Response:
        """Returns the response of a worker; one that states why not while a run is measured."""
        if not await self.may_analyse():
            return respond(failure(503, *NOT_NOW))
        return respond(await self.workers.answer(function, arguments, version))

    async def of_run(self, function: str, name: str, **arguments: Any) -> Response:
        """Returns the response of a worker about one run; its files are its version."""
        run = await self.run(name)
        version = run.signature if run.process is None else None
        return await self.analysed(function, {"run": run.row.id, **arguments}, version)

    async def report_of(self, function: str, name: str) -> Response:
        """Returns a run's result or report, which needs an analysis only where none is stored."""
        run = await self.run(name)
        analyse = await self.may_analyse()
        version = (run.signature, analyse) if run.process is None else None
        arguments = {"run": run.row.id, "analyse": analyse}
        return respond(await self.workers.answer(function, arguments, version))


def respond(answer: RenderedResponse) -> Response:
    """Returns the response of an answer."""
    headers = {**answer.headers, **({"retry-after": "30"} if answer.status == 503 else {})}
    return Response(answer.body, answer.status, headers, answer.content_type)


def json_response(content: Any, status: int = 200) -> Response:
    """Returns the response of a record or mapping."""
    return respond(document(content, status))


def _dashboard(request: Request) -> Dashboard:
    dashboard: Dashboard = request.app.state.dashboard
    return dashboard


Shared = Annotated[Dashboard, Depends(_dashboard)]
"""Parameter of a route: the dashboard of its application."""
