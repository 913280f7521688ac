"""Bytes that peers send: the far side of a benchmark, HTTP servers, the dashboard."""

from __future__ import annotations

import contextlib
import functools
import json
import socket
import subprocess
from pathlib import Path
from typing import Any
from unittest import mock

from tests.serve.made import call
from tests.serve.made import settings as dashboard_settings

from nephoscope.core import programs
from nephoscope.httpd.responses import RenderedResponse
from nephoscope.serve.app import make_app
from nephoscope.serve.workers import Workers

from ..boundary import CASE_S, FIRST_AND_JSON_LINES, Boundary
from .programs import DEADLINE_S, PROGRAM_EXITS, limit_memory

_RTT = b'rtt\n{"packet_bytes": 64, "packets": 10, "same_clock": true}\n"report"\n'
_THROUGHPUT = (
    b'throughput\n{"tcp": true, "up": true, "down": true, "streams": 2, "send_bytes": 4096, '
    b'"warmup_ns": 0, "duration_ns": 1000000, "interval_ns": 100000, "packet_bytes": 1400, '
    b'"per_s": 0.0, "wait_ns": 0, "press": null}\n"go"\n"finish"\n"report"\n'
)


def _far_side(case: bytes) -> None:
    """Sends lines to the far side of a benchmark, as a peer that knows the token."""
    name, _, messages = case.partition(b"\n")
    benchmark = "net.rtt" if b"rtt" in name else "net.throughput"
    words = [str(programs.find_probe()), "serve", benchmark, "--token-file", "-"]
    server = subprocess.Popen(
        [*words, "--deadline", DEADLINE_S],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=limit_memory,
    )
    with server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(b"a-token-of-the-test-0123456789\n")
        server.stdin.flush()
        ready = json.loads(server.stdout.readline())["ready"]
        with socket.create_connection((ready["address"], ready["port"])) as peer:
            peer.sendall(b"a-token-of-the-test-0123456789\n" + messages)
        _, said = server.communicate(timeout=CASE_S)
    if server.returncode not in PROGRAM_EXITS or b"panicked" in said:
        raise AssertionError(f"exit code {server.returncode}: {said[-300:]!r}")


_REQUESTS = (
    b"GET /bytes/5 HTTP/1.1\r\nHost: a\r\nUser-Agent: curl\r\n\r\n",
    b"POST /sum HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 4\r\n\r\nbody",
    b"HEAD /service?bytes=7 HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n" * 2,
)


@functools.cache
def _http_server() -> tuple[subprocess.Popen[bytes], tuple[str, int]]:
    """Returns a server of http.serve, which ends with this process, and where it listens."""
    words = ["serve", "http.serve", "--control", "--with-parent", "--deadline", "86400"]
    pipe = subprocess.PIPE
    server = subprocess.Popen(
        [str(programs.find_probe()), *words], stdin=pipe, stdout=pipe, preexec_fn=limit_memory
    )
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(b"token a-token-of-the-test-0123456789\n")
    server.stdin.flush()
    ready = json.loads(server.stdout.readline())["ready"]
    return server, (ready["address"], ready["port"])


def _http_requests(case: bytes) -> None:
    """Sends requests and ends; the server answers or hangs up, and goes on."""
    server, address = _http_server()
    answer = b""
    connected = socket.create_connection(address, timeout=CASE_S)
    with connected as client, contextlib.suppress(ConnectionError):
        client.sendall(case)
        client.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    if server.poll() is not None or (answer and not answer.startswith(b"HTTP/1.1 ")):
        raise AssertionError(f"exit code {server.returncode}: {answer[:300]!r}")


_DASHBOARD_REQUESTS = (
    b"GET /api/v1/runs?state=finished&label=a=b&since=2026-01-01&limit=50\nhost: localhost",
    b"GET /api/v1/runs/20260101-000000-x-0000/samples?benchmark=null&metric=a&target=b&factors={}"
    b"\nhost: 127.0.0.1:8765\ncookie: nephoscope_session=x; a=b\nlast-event-id: 1.2",
    b"GET /api/v1/commands/sla/verdict?contract=ec2-region&events=a.csv&bill=1\nhost: localhost",
    b"GET /api/v1/compare?a=20260101&b=20260102:x&margin=0.03&confidence=0.95\nhost: [::1]:80",
    b'POST /api/v1/session\nhost: localhost\norigin: http://localhost\n\n{"token": "x"}',
    b'POST /api/v1/runs\nhost: localhost\ncontent-type: application/json\n\n{"plan": "a.yaml"}',
    b"GET /assets/index.js\nhost: localhost\nif-none-match: x\nsec-fetch-site: same-origin",
)
"""Method and address, headers, an empty line, the body."""


@functools.cache
def _dashboard() -> Any:
    return make_app(dashboard_settings(Path("/nonexistent/store")))


def _dashboard_requests(case: bytes) -> None:
    """Sends one request; whatever it is, the answer is no failure of the server."""
    head, _, body = case.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    method, _, address = first.decode("latin-1").partition(" ")
    fields = (line.decode("latin-1").partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in fields}
    answer = mock.AsyncMock(return_value=RenderedResponse(200, b"{}"))
    with mock.patch.object(Workers, "answer", answer):
        reply = call(_dashboard(), address, method=method, headers=headers, body=body)
    if reply.status >= 500:
        raise AssertionError(f"{reply.status}: {reply.body[:300]!r}")


BOUNDARIES = (
    Boundary("far side", lambda: (_RTT, _THROUGHPUT), _far_side, FIRST_AND_JSON_LINES),
    Boundary("HTTP requests", lambda: _REQUESTS, _http_requests),
    Boundary("dashboard requests", lambda: _DASHBOARD_REQUESTS, _dashboard_requests),
)
