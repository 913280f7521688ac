"""What the programs of this folder share: lines of JSON, and the signal that ends them."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ended = threading.Event()
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

    server = ThreadingHTTPServer((address, port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
