"""Servers on loopback that answer as no storage service should, for clients that have to end."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

Behaviour = Callable[[socket.socket, threading.Event], None]
"""What is done with a connection until it ends, or until the event is set."""

PAUSE_S = 0.2


def silent(connection: socket.socket, ended: threading.Event) -> None:
    """Accepts, and says nothing."""
    ended.wait()


def hanging_up(connection: socket.socket, ended: threading.Event) -> None:
    """Closes after the first bytes of a request."""
    connection.recv(64)


def garbage(connection: socket.socket, ended: threading.Event) -> None:
    """Bytes that are no HTTP, no SSH and no TLS."""
    connection.recv(64)
    connection.sendall(os.urandom(4096) + b"\r\n\r\n")


def slow_body(connection: socket.socket, ended: threading.Event) -> None:
    """A body that is announced in full and comes a byte at a time."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while not ended.wait(PAUSE_S):
        connection.sendall(b"<")


def slow_head(connection: socket.socket, ended: threading.Event) -> None:
    """A head of an answer without an end, a line at a time."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while not ended.wait(PAUSE_S):
        connection.sendall(b"X-Line: value\r\n")


def endless_body(connection: socket.socket, ended: threading.Event) -> None:
    """A body without an end, as fast as it is read."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    while not ended.is_set():
        connection.sendall(chunk)


def endless_list(page: str) -> Behaviour:
    """The same page of a list, which says that another follows, in answer to every request."""
    body = page.encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    def behaviour(connection: socket.socket, ended: threading.Event) -> None:
        while not ended.is_set() and connection.recv(65536):
            connection.sendall(head + body)

    return behaviour


_FOLDERS = [f"{number:03d}-{'x' * 500}" for number in range(100)]
LISTS: Mapping[str, str] = {
    "s3": "<ListBucketResult><IsTruncated>true</IsTruncated>"
    "<NextContinuationToken>next</NextContinuationToken>"
    + "".join(f"<CommonPrefixes><Prefix>{each}/</Prefix></CommonPrefixes>" for each in _FOLDERS)
    + "</ListBucketResult>",
    "azblob": "<EnumerationResults><Blobs>"
    + "".join(f"<BlobPrefix><Name>{each}/</Name></BlobPrefix>" for each in _FOLDERS)
    + "</Blobs><NextMarker>next</NextMarker></EnumerationResults>",
    "gcs": json.dumps({"nextPageToken": "next", "prefixes": [f"{each}/" for each in _FOLDERS]}),
    "webhdfs": json.dumps(
        {
            "DirectoryListing": {
                "partialListing": {
                    "FileStatuses": {
                        "FileStatus": [
                            {
                                "length": 0,
                                "modificationTime": 0,
                                "pathSuffix": each,
                                "type": "DIRECTORY",
                            }
                            for each in _FOLDERS
                        ]
                    }
                },
                "remainingEntries": 1,
            }
        }
    ),
}
"""Services with pages -> a page that is not the last one."""


HTTP = (silent, hanging_up, garbage, slow_body, slow_head, endless_body)
"""Behaviours that concern every service over HTTP."""


class Hostile:
    """A server of one behaviour. tls: key and certificate."""

    def __init__(self, behaviour: Behaviour, tls: Mapping[str, Path] | None = None) -> None:

        self._behaviour = behaviour
        self._ended = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._context: ssl.SSLContext | None = None
        if tls is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(tls["certificate"], tls["key"])

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        # Whoever hangs up has ended, which is what is wanted of clients.
        with contextlib.suppress(OSError), connection:
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            self._behaviour(connection, self._ended)

    def stop(self) -> None:
        self._ended.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@contextlib.contextmanager
def hostile(behaviour: Behaviour, tls: Mapping[str, Path] | None = None) -> Iterator[Hostile]:
    """A hostile server in a thread."""
    server = Hostile(behaviour, tls)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(10)
