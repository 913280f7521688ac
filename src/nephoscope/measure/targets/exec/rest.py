"""A server of JSON over HTTP: on the network, with TLS, or at a socket of this machine."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

CONNECT_S, READ_S = 5.0, 30.0
"""Longest waits for a connection, and for an answer."""

_ANSWER_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class Answer:
    """status: of HTTP. document: what was answered, read as JSON; {} where that is no mapping."""

    status: int
    document: Mapping[str, Any]
    text: str = ""

    @property
    def good(self) -> bool:
        """Returns whether it was done."""
        return 200 <= self.status < 300


class NotReached(OSError):
    """No connection came about: nothing was asked."""


@dataclass(frozen=True, slots=True)
class RestServer:
    """Where an API is. host, port: of TCP; path: of a socket of this machine instead.

    headers: of each request; they hold secrets. prefix: before every path.
    """

    host: str = "localhost"
    port: int = 0
    path: str = ""
    prefix: str = ""
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    tls_name: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        read_s: float = READ_S,
    ) -> Answer:
        """Asks once and returns the answer, of whatever status.

        Raises NotReached, and OSError for an answer that did not come, or not whole.
        """
        connection = _Connection(self, read_s)
        try:
            connection.connect()
            content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
            headers = {**self.headers, "Accept": "application/json"}
            if content is not None:
                headers["Content-Type"] = content_type
            try:
                connection.request(method, self.prefix + path, content, headers)
                response = connection.getresponse()
                text = response.read(_ANSWER_BYTES).decode("utf-8", "replace")
            except http.client.HTTPException as error:
                raise ConnectionError(f"a broken answer ({type(error).__name__})") from error
        finally:
            connection.close()
        try:
            document = json.loads(text)
        except ValueError:
            if 200 <= response.status < 300 and "json" in response.headers.get("Content-Type", ""):
                raise ConnectionError("an answer that was cut off") from None
            document = {}
        return Answer(response.status, document if isinstance(document, dict) else {}, text)

    def lines(self, path: str, *, read_s: float = READ_S) -> Iterator[bytes]:
        """Yields the lines of an answer as they come; none where its status is an error.

        Raises NotReached, and OSError where no line comes for the time, or the last one is broken.
        """
        connection = _Connection(self, read_s)
        try:
            connection.connect()
            try:
                connection.request("GET", self.prefix + path, headers={**self.headers})
                response = connection.getresponse()
                if response.status != 200:
                    return
                while line := response.readline(_ANSWER_BYTES):
                    yield line
            except http.client.HTTPException as error:
                raise ConnectionError(f"a broken answer ({type(error).__name__})") from error
        finally:
            connection.close()

    async def open_stream(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Opens a connection for a protocol of one's own. Raises OSError."""
        async with asyncio.timeout(CONNECT_S):
            if self.path:
                return await asyncio.open_unix_connection(self.path)
            name = (self.tls_name or self.host) if self.tls else None
            return await asyncio.open_connection(
                self.host, self.port, ssl=self.tls, server_hostname=name
            )


class _Connection(http.client.HTTPConnection):
    """A connection of one request."""

    def __init__(self, server: RestServer, read_s: float) -> None:
        super().__init__(server.host, server.port or None, timeout=read_s)
        self._server = server

    def connect(self) -> None:
        """Connects. Raises NotReached."""
        server, read_s = self._server, self.timeout
        try:
            if server.path:
                self.sock = socket.socket(socket.AF_UNIX)
                self.sock.settimeout(CONNECT_S)
                self.sock.connect(server.path)
            else:
                self.sock = socket.create_connection((server.host, server.port), CONNECT_S)
            if server.tls is not None:
                name = server.tls_name or server.host
                self.sock = server.tls.wrap_socket(self.sock, server_hostname=name)
        except OSError as error:
            raise NotReached(_words(error)) from error
        self.sock.settimeout(read_s)


def _words(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {error.verify_message}"
    if isinstance(error, TimeoutError):
        return f"no connection within {CONNECT_S:g} s"
    if error.errno and not isinstance(error, ssl.SSLError | socket.gaierror):
        return os.strerror(error.errno)
    return error.strerror or str(error)


def words_of_failure(error: OSError) -> str:
    """Returns the words for an answer that did not come."""
    if isinstance(error, TimeoutError):
        return f"no answer within {READ_S:g} s"
    return str(error) if isinstance(error, NotReached | ConnectionError) else _words(error)
