"""HTTP/2 of http.load against nginx: what it counts is what nginx logs."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.tools import located, needs
from trials import run

CERTIFICATES = Path(__file__).parents[2] / "crates/probe/src/http/requests/test_certificates"

# Connections end after 50 requests, with requests of the client on their way.
CONFIGURATION = """
daemon off; master_process off; pid nginx.pid; error_log error.log;
events {{ worker_connections 128; }}
http {{
  client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f;
  uwsgi_temp_path u; scgi_temp_path s;
  log_format line '$server_protocol $status'; access_log access.log line;
  keepalive_requests 50; client_max_body_size 1m;
  ssl_certificate {certificates}/server.pem; ssl_certificate_key {certificates}/server.key;
  server {{
    listen 127.0.0.1:{plain} http2; listen 127.0.0.1:{tls} ssl http2;
    root .; client_body_buffer_size 200k;
    location = /post {{ proxy_pass http://127.0.0.1:{inner}/; }}
  }}
  server {{ listen 127.0.0.1:{inner}; access_log off; return 200 'thanks'; }}
}}
"""

pytestmark = needs("nginx")


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in sockets]
    for server in sockets:
        server.close()
    return ports


@contextmanager
def nginx(folder: Path) -> Iterator[tuple[int, int]]:
    """Runs nginx with HTTP/2 until the end; yields its ports without and with TLS."""
    plain, tls, inner = free_ports(3)
    text = CONFIGURATION.format(certificates=CERTIFICATES, plain=plain, tls=tls, inner=inner)
    (folder / "nginx.conf").write_text(text)
    (folder / "page").write_bytes(b"x" * 100_000)
    user = ["-g", "user root;"] if os.geteuid() == 0 else []
    command = [located("nginx"), "-p", str(folder), "-e", "error.log", "-c", "nginx.conf", *user]
    with subprocess.Popen(command) as server:
        try:
            while server.poll() is None:
                try:
                    socket.create_connection(("127.0.0.1", tls), timeout=5).close()
                    break
                except ConnectionRefusedError:
                    time.sleep(0.01)
            assert server.poll() is None, (folder / "error.log").read_text()
            yield plain, tls
        finally:
            server.terminate()


LOAD: dict[str, Any] = {
    "version": "2",
    "streams": 4,
    "connections": 3,
    "warmup_ns": 0,
    "duration_ns": 200_000_000,
}


def test_what_is_sent_is_what_nginx_serves(tmp_path: Path) -> None:
    post = {"method": "POST", "body": "b" * 100_000, "expected_body_text": "thanks"}
    page = {"expected_body_bytes": 100_000}
    authority = {"tls_ca_file": str(CERTIFICATES / "ca.pem")}
    with nginx(tmp_path) as (plain, tls):
        trials = [
            run("http.load", {**LOAD, **params})
            for params in (
                {"url": f"http://127.0.0.1:{plain}/page", **page},
                {"url": f"https://localhost:{tls}/page", **page, **authority},
                {"url": f"http://127.0.0.1:{plain}/post", **post},
                {"url": f"http://127.0.0.1:{plain}/none", "expected_statuses": [404]},
            )
        ]
    served = Counter((tmp_path / "access.log").read_text().splitlines())
    sent = [trial.one("sent_count") for trial in trials]
    assert sent == [trial.one("completed_count") for trial in trials]
    assert served == {"HTTP/2.0 200": sum(sent[:3]), "HTTP/2.0 404": sent[3]}
    for trial in trials:
        # Each connection but the last three served 50.
        assert trial.one("connections_count") >= trial.one("sent_count") / 50
