"""An S3 service in this process: objects in memory, with conditional writes, and with faults."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape


@dataclass(slots=True)
class S3Double:
    """The service. requests: method and key of each, in order. fault: see `_fault`."""

    url: str = ""
    bucket: str = "lab"
    objects: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    fault: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, method: str) -> int:
        """Returns how many requests of a method there were."""
        return sum(known == method for known, _ in self.requests)


def _tag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    double: S3Double

    def log_message(self, *_: Any) -> None:
        """Prints nothing."""

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _error(self, status: int, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code></Error>".encode())

    def _fault(self) -> bool:
        fault = self.double.fault
        if fault == "silent":
            time.sleep(30)
            return True
        if fault == "read-only" and self.command in ("PUT", "DELETE"):
            self._error(403, "AccessDenied")
            return True
        if fault.isidentifier() and fault[0].isupper():
            self._error(404 if fault == "NoSuchBucket" else 403, fault)
            return True
        return False

    def _handle(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        parts = urlsplit(self.path)
        _, bucket, *rest = parts.path.split("/", 2)
        key = rest[0] if rest else ""
        with self.double.lock:
            self.double.requests.append((self.command, key))
        if self._fault():
            return
        if bucket != self.double.bucket:
            self._error(404, "NoSuchBucket")
        elif not key:
            self._list(parse_qs(parts.query).get("prefix", [""])[0])
        elif self.command == "PUT":
            self._put(key, body)
        elif self.command == "DELETE":
            with self.double.lock:
                self.double.objects.pop(key, None)
            self._answer(204)
        else:
            self._get(key)

    do_GET = do_PUT = do_DELETE = do_HEAD = _handle  # noqa: N815

    def _put(self, key: str, body: bytes) -> None:
        with self.double.lock:
            now = self.double.objects.get(key)
            if self.double.fault != "ignores-conditions":
                absent, tag = self.headers.get("If-None-Match"), self.headers.get("If-Match")
                if (absent and now is not None) or (tag and (now is None or _tag(now) != tag)):
                    self._error(412 if now is not None else 404, "PreconditionFailed")
                    return
            self.double.objects[key] = body
        self._answer(200, ETag=_tag(body))

    def _get(self, key: str) -> None:
        with self.double.lock:
            content = self.double.objects.get(key)
        modified = "Fri, 27 Nov 2026 10:00:00 GMT"
        if content is None:
            self._error(404, "NoSuchKey")
        elif self.headers.get("If-None-Match") == _tag(content):
            self._answer(304, ETag=_tag(content), Last_Modified=modified)
        elif self.command == "GET" and self.headers.get("Range"):
            first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
            end = min(int(last) + 1, len(content))
            text = f"bytes {first}-{end - 1}/{len(content)}"
            part = content[int(first) : end]
            self._answer(206, part, ETag=_tag(content), Last_Modified=modified, Content_Range=text)
        else:
            size = {"Content_Length": str(len(content))} if self.command == "HEAD" else {}
            self._answer(200, content, ETag=_tag(content), Last_Modified=modified, **size)

    def _list(self, prefix: str) -> None:
        with self.double.lock:
            found = [(key, c) for key, c in self.double.objects.items() if key.startswith(prefix)]
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(c)}</Size>"
            "<LastModified>2026-11-27T10:00:00.000Z</LastModified><ETag>x</ETag></Contents>"
            for key, c in sorted(found)
        )
        self._answer(
            200,
            f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>".encode(),
        )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


@contextmanager
def running() -> Iterator[S3Double]:
    """Yields the service while it runs on a free port of loopback."""
    double = S3Double()
    handler = type("Handler", (_Handler,), {"double": double})
    server = _Server(("127.0.0.1", 0), handler)
    double.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield double
    finally:
        server.shutdown()
        server.server_close()
