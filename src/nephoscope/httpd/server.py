"""Listens and serves: sockets, time limits of connections."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterable
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from nephoscope.core.errors import UsageError
from nephoscope.httpd.guard import SEND_S
from nephoscope.httpd.settings import ServerSettings, url_host

MAX_CONNECTIONS = 256
"""Connections at once. A further one takes the place of the one that has waited longest without a
request; where none waits, it gets 503."""
MAX_ADDRESS_CONNECTIONS = 128
"""Connections of one address, of which the same holds, so that others always find a place."""
HEADERS_S = 10.0
"""Seconds within which a request's headers have to arrive."""
NICENESS = 10
"""The server gives way to what is measured beside it."""


class TimedProtocol(H11Protocol):
    """HTTP/1.1, which closes a connection whose request does not arrive in time, or at once where
    its place is needed."""

    _deadline: asyncio.TimerHandle | None = None
    _waits_since_s = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins to wait for a request, and makes room for this connection."""
        super().connection_made(transport)
        self._wait()
        every = [
            connection for connection in self.connections if isinstance(connection, TimedProtocol)
        ]
        same = [connection for connection in every if connection._address == self._address]
        if len(same) > MAX_ADDRESS_CONNECTIONS and not _close_one_that_waits(same, self):
            self.transport.close()
        elif len(every) >= MAX_CONNECTIONS:
            _close_one_that_waits(every, self)

    def on_response_complete(self) -> None:
        """Begins to wait for the next request."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Waits no more."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    @property
    def _is_waiting(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._waits_since_s = self.loop.time()
        self._deadline = self.loop.call_later(HEADERS_S, self._close_if_idle)

    def _close_if_idle(self) -> None:
        if self._is_waiting:
            self.transport.close()


def _close_one_that_waits(connections: Iterable[TimedProtocol], new: TimedProtocol) -> bool:
    """Closes the connection that has waited longest for a request; returns whether one waits."""
    waiting = [
        connection for connection in connections if connection is not new and connection._is_waiting
    ]
    if not waiting:
        return False
    oldest = min(waiting, key=lambda connection: connection._waits_since_s)
    oldest.connections.discard(oldest)  # now, since the loop reports its end later
    oldest.transport.abort()
    return True


def listen(settings: ServerSettings) -> socket.socket:
    """Returns a listening socket. Raises UsageError for an address that cannot be taken."""
    family = socket.AF_INET6 if ":" in settings.address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Of every connection: what the server has written and a client does not take keeps the
        # connection open after the response and after its close, and there are only so many.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * SEND_S))
        listener.bind((settings.address, settings.port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise UsageError(
            f"{settings.address} port {settings.port} cannot be taken: {error.strerror}.",
            "Name another with --port; 0 takes a free one.",
        ) from error
    return listener


def url_of(settings: ServerSettings, listener: socket.socket) -> str:
    """Returns the address of the page."""
    host = settings.host_names[0] if settings.host_names else url_host(settings.address)
    return f"{settings.scheme}://{host}:{listener.getsockname()[1]}/"


def uvicorn_server(app: ASGIApp, **options: Any) -> uvicorn.Server:
    """Returns a server of an application. options: further ones of uvicorn.Config."""
    config = uvicorn.Config(
        app,
        http=TimedProtocol,
        ws="none",
        # Requests are not logged: a token could stand in what a client sends.
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=int(HEADERS_S),
        **options,
    )
    return uvicorn.Server(config)


def serve(app: ASGIApp, settings: ServerSettings, listener: socket.socket) -> None:
    """Serves an application until a signal ends it."""
    os.nice(NICENESS)
    tls = settings.tls
    server = uvicorn_server(
        app,
        lifespan="on",
        timeout_graceful_shutdown=5,
        ssl_context_factory=None if tls is None else lambda config, default: tls,
    )
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        pass
    finally:
        listener.close()
