"""A server over TLS, whose certificate is for localhost and 127.0.0.1 and from an authority of the
tests."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.servers import serving

_FOLDER = Path(__file__).parents[1] / "crates/probe/src/http/requests/test_certificates"
AUTHORITY = _FOLDER / "ca.pem"


@contextmanager
def tls_server(address: str, answer: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """Serves on an address of loopback; yields the port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_FOLDER / "server.pem", _FOLDER / "server.key")
    http = ThreadingHTTPServer((address, 0), answer)
    http.socket = context.wrap_socket(http.socket, server_side=True)
    http.handle_error = lambda request, address: None  # type: ignore[method-assign]
    with serving(http) as port:
        yield port
