"""Calls the application in this process, and starts real servers on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nephoscope.httpd.settings import ServerSettings
from nephoscope.store import Store

TOKEN = "a-token-of-the-tests-0123456789"
PATIENCE_S = 120


@dataclass(frozen=True)
class Reply:
    """A response. headers: names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def settings(store: Path, **changes: Any) -> ServerSettings:
    values: dict[str, Any] = {"store": Store(store), **changes}
    return ServerSettings(**values)


def call(
    app: Any,
    path: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    chunks: int = 0,
) -> Reply:
    """Sends one request to an application. chunks: send the body so often, without a length."""
    return asyncio.run(_call(app, path, method, headers or {}, body, chunks))


async def _call(
    app: Any, path: str, method: str, headers: Mapping[str, str], body: bytes, chunks: int
) -> Reply:
    name, _, query = path.partition("?")
    all_headers = {"host": "127.0.0.1:8765", **headers}
    if chunks:
        all_headers["transfer-encoding"] = "chunked"
    elif body:
        all_headers.setdefault("content-length", str(len(body)))
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": name,
        "raw_path": name.encode(),
        "query_string": query.encode(),
        "headers": [(key.encode(), value.encode()) for key, value in all_headers.items()],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8765),
        "root_path": "",
    }
    waiting = [body] * chunks if chunks else [body]
    sent: list[Any] = []

    async def receive() -> Any:
        if not waiting:
            return {"type": "http.disconnect"}
        part = waiting.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(waiting)}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    names = {key.decode().lower(): value.decode() for key, value in sent[0]["headers"]}
    content = b"".join(message.get("body", b"") for message in sent[1:])
    return Reply(sent[0]["status"], names, content)


@dataclass(frozen=True)
class RunningServer:
    """A server process. url: as it printed it."""

    process: subprocess.Popen[str]
    url: str

    @property
    def port(self) -> int:
        return int(self.url.rstrip("/").rpartition(":")[2])


@contextlib.contextmanager
def running(store: Path, *options: str, log: Path, **environment: str) -> Iterator[RunningServer]:
    """Starts `nephoscope serve` on a free port of loopback; `log` receives its messages."""
    with log.open("w") as messages:
        process = subprocess.Popen(
            [sys.executable, "-m", "nephoscope", "serve", "--port=0", f"--store={store}", *options],
            stdout=subprocess.PIPE,
            stderr=messages,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "", **environment},
        )
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()  # printed once requests are answered
        assert url.startswith("http"), log.read_text()
        yield RunningServer(process, url)
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        finally:
            process.kill()
            process.stdout.close()


def listening(pid: int) -> set[tuple[str, str]]:
    """Returns table and local address of every listening socket of a process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    inodes = set()
    for process in (str(pid), *children):
        for link in Path(f"/proc/{process}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                target = os.readlink(link)
                if target.startswith("socket:["):
                    inodes.add(target[8:-1])
    found = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in inodes and fields[3] in ("0A", "07"):
                found.add((table, fields[1].partition(":")[0]))
    return found
