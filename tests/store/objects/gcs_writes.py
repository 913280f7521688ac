"""Google's XML interface in front of an emulator that has only its JSON interface for writes.

Writes are translated with their condition; all other requests are passed on as they are. Whether
a condition holds is decided by the emulator alone.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote, unquote, urlsplit

_PASSED_BACK = ("ETag", "Last-Modified", "Content-Range", "Content-Type", "X-Goog-Generation")
_PASSED_ON = ("Range", "If-None-Match", "If-Match")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    emulator = ("", 0)
    own = threading.local()

    def do_PUT(self) -> None:
        bucket, _, key = unquote(urlsplit(self.path).path).lstrip("/").partition("/")
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(key, safe='')}"
        condition = self.headers.get("x-goog-if-generation-match")
        if condition is not None:
            path += f"&ifGenerationMatch={condition}"
        status, _, answer = self.ask("POST", path, content, {"Content-Type": "application/x"})
        if status != 200:
            self.reply(status, {}, answer)
            return
        about = json.loads(answer)
        headers = {"ETag": f'"{about["etag"]}"', "X-Goog-Generation": about["generation"]}
        self.reply(200, headers, b"")

    def do_GET(self) -> None:
        headers = {name: self.headers[name] for name in _PASSED_ON if name in self.headers}
        status, back, answer = self.ask(self.command, self.path, b"", headers)
        self.reply(status, back, answer)

    do_HEAD = do_DELETE = do_GET  # noqa: N815

    def ask(
        self, method: str, path: str, content: bytes, headers: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        for _ in range(2):
            connection = getattr(self.own, "connection", None)
            if connection is None:
                connection = self.own.connection = http.client.HTTPConnection(*self.emulator)
            try:
                connection.request(method, path, content, headers)
                response = connection.getresponse()
                answer = response.read()
            except (http.client.HTTPException, OSError):  # an idle connection was closed
                connection.close()
                self.own.connection = None
                continue
            back = {name: response.headers[name] for name in _PASSED_BACK if response.headers[name]}
            if method == "HEAD":
                back["Content-Length"] = response.headers.get("Content-Length", "0")
            return response.status, back, answer
        return 503, {}, b""

    def reply(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(OSError):  # who asked was killed
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass

    def handle(self) -> None:
        try:
            with contextlib.suppress(OSError):
                super().handle()
        finally:
            if connection := getattr(self.own, "connection", None):
                connection.close()
                self.own.connection = None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024


@contextlib.contextmanager
def translating(emulator_port: int) -> Iterator[str]:
    """Yields the URL of the translation."""
    handler = type("Handler", (_Handler,), {"emulator": ("127.0.0.1", emulator_port)})
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
