"""An object store in memory, with faults. It listens where the machines of a test reach it.

Conditional writes: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from .signed_requests import KEY, SECRET, Refused, check

BUCKET = "results"


@dataclass
class ObjectStore:
    """One bucket. fault: asked before each request with method and key; returns a status to refuse
    it with, 'cut' to store half of it and hang up, 'lost' to answer nothing, or nothing."""

    objects: dict[str, tuple[bytes, float]] = field(default_factory=dict)
    fault: Callable[[str, str], int | str | None] = lambda method, key: None
    ahead_s: float = 0.0
    keeps_versions: bool = False
    knows_conditions: bool = True
    requests: list[tuple[str, str, int]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    endpoint: str = ""

    def now(self) -> float:
        return time.time() + self.ahead_s

    @property
    def keys(self) -> list[str]:
        return sorted(self.objects)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    store: ObjectStore

    def handle_expect_100(self) -> bool:
        done = super().handle_expect_100()
        self.wfile.flush()  # else the client waits a second for it
        return done

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _error(self, code: str, status: int) -> None:
        self._answer(
            status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
        )

    def _serve(self) -> None:
        url = urlsplit(self.path)
        bucket, _, key = unquote(url.path).lstrip("/").partition("/")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        store, status = self.store, 0
        fault = store.fault(self.command, key)
        if fault == "lost-before":
            self.close_connection = True
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            check(self.command, self.path, headers, body, store.now())
            if isinstance(fault, int):
                raise Refused("InternalError" if fault >= 500 else "AccessDenied", fault)
            if bucket != BUCKET:
                raise Refused("NoSuchBucket", 404)
            query = parse_qs(url.query, keep_blank_values=True)
            with store.lock:
                status = self._act(key, query, headers, body, str(fault or ""))
        except Refused as refused:
            status = refused.status
            self._error(refused.code, refused.status)
        store.requests.append((self.command, key, status))

    def _act(
        self,
        key: str,
        query: dict[str, list[str]],
        headers: dict[str, str],
        body: bytes,
        fault: str,
    ) -> int:
        store = self.store
        if self.command == "PUT":
            return self._put(key, headers, body, fault)
        if self.command == "POST":
            for name in re.findall(r"<Key>(.*?)</Key>", body.decode()):
                store.objects.pop(name, None)
            self._answer(200, b"<DeleteResult></DeleteResult>")
        elif self.command == "DELETE":
            store.objects.pop(key, None)
            self._answer(204)
        elif key:
            if key not in store.objects:
                raise Refused("NoSuchKey", 404)
            content, modified = store.objects[key]
            self._answer(200, content, Last_Modified=formatdate(modified, usegmt=True))
        else:
            self._answer_on_bucket(query)
        return 200

    def _put(self, key: str, headers: dict[str, str], body: bytes, fault: str) -> int:
        store = self.store
        if headers.get("if-none-match") == "*":
            if not store.knows_conditions:
                raise Refused("NotImplemented", 501)
            if key in store.objects:
                raise Refused("PreconditionFailed", 412)
        # A store that is not atomic, or something between: half of an object.
        content = body[: len(body) // 2] if fault == "cut" else body
        store.objects[key] = (content, store.now())
        if fault == "lost":
            self.close_connection = True
            return 0
        self._answer(200, ETag='"x"')
        return 200

    def _answer_on_bucket(self, query: dict[str, list[str]]) -> None:
        if "versioning" in query:
            inside = "<Status>Enabled</Status>" if self.store.keeps_versions else ""
            config = f"<VersioningConfiguration>{inside}</VersioningConfiguration>"
            self._answer(200, config.encode())
        elif self.command == "HEAD":
            self._answer(200, x_amz_bucket_region="us-east-1")
        else:
            self._answer(200, _listing(self.store, query))

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _serve  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


def _listing(store: ObjectStore, query: dict[str, list[str]]) -> bytes:
    prefix = query.get("prefix", [""])[0]
    delimiter = query.get("delimiter", [""])[0]
    start = query.get("continuation-token", [""])[0]
    entries: list[str] = []
    folders: dict[str, None] = {}
    size = 50
    keys = [key for key in sorted(store.objects) if key.startswith(prefix) and key > start]
    for key in keys[:size]:
        rest = key[len(prefix) :]
        if delimiter and delimiter in rest:
            folders[prefix + rest.split(delimiter)[0] + delimiter] = None
            continue
        content, modified = store.objects[key]
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(modified))
        entries.append(
            f"<Contents><Key>{escape(key)}</Key><LastModified>{stamp}</LastModified>"
            f"<Size>{len(content)}</Size></Contents>"
        )
    more = len(keys) > size
    after = (
        f"<NextContinuationToken>{escape(keys[size - 1])}</NextContinuationToken>" if more else ""
    )
    common = "".join(
        f"<CommonPrefixes><Prefix>{escape(f)}</Prefix></CommonPrefixes>" for f in folders
    )
    text = (
        f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{after}"
        f"{''.join(entries)}{common}</ListBucketResult>"
    )
    return text.encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *arguments: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(*arguments)


@contextlib.contextmanager
def running(address: str = "127.0.0.1") -> Iterator[ObjectStore]:
    """A store at an address of this machine, ended with the block."""
    store = ObjectStore()
    handler = type("Handler", (_Handler,), {"store": store})
    with _Server((address, 0), handler) as server:
        store.endpoint = f"http://{address}:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield store
        finally:
            server.shutdown()


def environment() -> dict[str, str]:
    """Variables by which the AWS libraries find the credentials."""
    return {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
