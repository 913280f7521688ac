"""The proxy in front of an HTTP server that counts what reaches it."""

from __future__ import annotations

import http.client
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.clouds import proxy


@pytest.fixture
def counted() -> Iterator[tuple[str, list[bytes]]]:
    """A server's address, and the bodies that it got."""
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("X-Host", self.headers["Host"])
            if self.path == "/chunks":
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.wfile.write(b"5\r\nhello\r\n5\r\nworld\r\n0\r\n\r\n")
                return
            self.send_header("Content-Length", "10")
            self.end_headers()
            self.wfile.write(b"helloworld")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", bodies
    server.shutdown()
    server.server_close()


def post(address: str, path: str = "/") -> bytes:
    with urllib.request.urlopen(address + path, b"body", timeout=60) as answer:
        return bytes(answer.read())


def test_requests_pass_unchanged(counted: tuple[str, list[bytes]]) -> None:
    target, bodies = counted
    with proxy.between(target) as between:
        assert post(between.endpoint) == b"helloworld"
        assert post(between.endpoint, "/chunks") == b"helloworld"
        connection = http.client.HTTPConnection(between.endpoint.removeprefix("http://"))
        for _ in range(3):
            connection.request("POST", "/", b"body")
            answer = connection.getresponse()
            assert answer.headers["X-Host"] == between.endpoint.removeprefix("http://")
            assert answer.read() == b"helloworld"
        connection.close()
    assert bodies == [b"body"] * 5


LOST = (http.client.HTTPException, OSError)

FAULTS = {"drop": (0, LOST), "lose": (1, LOST), "truncate": (1, LOST), "duplicate": (2, None),
          "delay": (1, None), "error": (0, urllib.error.HTTPError),
          "error-after": (1, urllib.error.HTTPError)}  # fmt: skip
"""Fault -> how often the server gets the request, what the client sees."""


@pytest.mark.parametrize("fault", proxy.FAULTS)
def test_faults_are_what_they_say(counted: tuple[str, list[bytes]], fault: str) -> None:
    target, bodies = counted
    forwarded, seen = FAULTS[fault]
    with proxy.between(target, delay_s=0.01, **{fault.replace("-", "_"): 1.0}) as between:
        if seen is None:
            assert post(between.endpoint) == b"helloworld"
        else:
            with pytest.raises(seen) as caught:
                post(between.endpoint)
            if isinstance(caught.value, urllib.error.HTTPError):
                caught.value.close()
        assert between.happened == {fault: 1}
    assert len(bodies) == forwarded


def test_rates_are_drawn_from_the_seed(counted: tuple[str, list[bytes]]) -> None:
    def drawn() -> list[bool]:
        with proxy.between(counted[0], seed=3, error=0.3) as between:
            found = []
            for _ in range(40):
                try:
                    post(between.endpoint)
                    found.append(True)
                except urllib.error.HTTPError as error:
                    error.close()
                    found.append(False)
            return found

    first = drawn()
    assert drawn() == first
    assert 4 <= first.count(False) <= 22


def test_an_unknown_fault_is_refused() -> None:
    with (
        pytest.raises(ValueError, match="no such faults"),
        proxy.between("http://127.0.0.1:9", oops=1.0),
    ):
        pass
