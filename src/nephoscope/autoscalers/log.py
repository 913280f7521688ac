"""What the programs of this folder share: lines of JSON, and the signal that ends them."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer


class EndRequest:
    """An event that a signal handler may set at any moment.

    The handler runs in the thread that waits, which may hold the lock of a `threading.Event` just
    then: the program would wait for itself until it is killed.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._reader, self._writer = os.pipe()

    def set(self) -> None:
        """Ends every wait, now and later."""
        self._is_set = True
        os.write(self._writer, b".")

    def is_set(self) -> bool:
        """Returns whether the end was requested."""
        return self._is_set

    def wait(self, limit_s: float) -> None:
        """Returns at the request, or after this time."""
        select.select([self._reader], [], [], limit_s)


ended = EndRequest()
"""Set by SIGTERM."""
_lock = threading.Lock()


def begin() -> None:
    """Lets SIGTERM set `ended`."""
    signal.signal(signal.SIGTERM, lambda *_: ended.set())


def bound(command: list[str]) -> list[str]:
    """Returns a command that ends where the thread that started it ends, also by a kill."""
    return ["setpriv", "--pdeathsig", "KILL", *command]


def event(name: str, **values: object) -> None:
    """Prints one line: what happened, and when."""
    line = json.dumps({"at_ns": time.time_ns(), "event": name, **values})
    with _lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


class _ControlServer(ThreadingHTTPServer):
    daemon_threads = True

    def server_bind(self) -> None:
        """Binds without the name of the address: a lab has no resolver that would answer."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]


def serve(address: str, port: int, answer: Callable[[str, str], tuple[int, str]]) -> None:
    """Serves HTTP in a thread of its own. answer: method and path -> status and text."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def respond(self) -> None:
            status, text = answer(self.command, self.path)
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = respond  # noqa: N815 - the names that the class looks up

        def log_message(self, format: str, *args: object) -> None:
            """Prints nothing: standard output has the events."""

    server = _ControlServer((address, port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
