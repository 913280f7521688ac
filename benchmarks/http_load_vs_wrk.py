"""http.load beside wrk and h2load: rate and CPU time per request of one server on loopback.

The server has one CPU, the generator another one. Parts: HTTP/1.1 on 100 connections that are kept
alive (wrk), of nginx and of http.serve; as a user runs both, on ten connections, with nobody on a
CPU of its own (default); HTTP/2, ten streams on each of ten connections (h2load); a
full TLS handshake for each request (wrk); bodies of 1 MB over TLS (wrk). Both tools send the same
headers. Bounds: at least the other tool's rate (against http.serve, where the generator is the
limit, 1.2 times), at most its CPU time per request.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from _paired import (
    ROOT,
    Row,
    alternate,
    arguments,
    finish,
    machine,
    needed,
    one_value,
    paired_ratio,
    parse,
    print_table,
    probe_path,
    run_probe,
    version,
)
from net_loopback_vs_iperf3 import free_port

CERTIFICATES = ROOT / "crates/probe/src/http/requests/test_certificates"
Result = tuple[float, float]
"""Requests per second, and CPU seconds of the generator per request."""


@dataclass(frozen=True)
class Part:
    """One comparison: the size of the page, and how both tools ask for it."""

    tool: str
    scheme: str
    body_bytes: int
    connections: int
    params: Mapping[str, Any]
    options: tuple[str, ...]
    server: str = "nginx"
    rate_bound: float = 1.0
    is_pinned: bool = True


ANY_CERTIFICATE = {"tls_verify": False, "tls_version": "1.3"}
PARTS = {
    "http1": Part("wrk", "http", 166, 100, {}, ()),
    "default": Part("wrk", "http", 166, 10, {}, (), is_pinned=False),
    "serve": Part("wrk", "http", 166, 100, {}, (), server="http.serve", rate_bound=1.2),
    "http2": Part("h2load", "http", 166, 10, {"version": "2", "streams": 10}, ("-m10",)),
    "handshakes": Part(
        "wrk",
        "https",
        166,
        100,
        {**ANY_CERTIFICATE, "keep_alive": False},
        ("-H", "Connection: close"),
    ),
    "bulk": Part("wrk", "https", 1_000_000, 10, ANY_CERTIFICATE, ()),
}
PACKAGES = {"wrk": "wrk", "h2load": "nghttp2-client"}

CONFIGURATION = """
daemon off; worker_processes 1; {affinity} pid {folder}/pid;
error_log {folder}/error.log; {user}
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 1000000000; open_file_cache max=10;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  ssl_certificate {certificates}/server.pem; ssl_certificate_key {certificates}/server.key;
  ssl_protocols TLSv1.3; ssl_session_tickets off; ssl_session_cache off;
  server {{ listen 127.0.0.1:{port} backlog=4096{listen}; root {folder}; }}
}}
"""


@contextmanager
def nginx(cpu: int, part: Part) -> Iterator[str]:
    """Runs nginx on a CPU; yields the address of its only page."""
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        (folder / "index.html").write_bytes(b"x" * part.body_bytes)
        text = CONFIGURATION.format(
            folder=name,
            affinity=f"worker_cpu_affinity {1 << cpu:b};" if part.is_pinned else "",
            port=port,
            user="user root;" if os.geteuid() == 0 else "",
            certificates=CERTIFICATES,
            listen=" ssl" if part.scheme == "https" else " http2" if part.tool == "h2load" else "",
        )
        (folder / "nginx.conf").write_text(text)
        command = ["nginx", "-e", f"{name}/error.log", "-c", f"{name}/nginx.conf"]
        with subprocess.Popen(command) as server:
            try:
                wait_for(port)
                yield f"{part.scheme}://127.0.0.1:{port}/"
            finally:
                server.terminate()


@contextmanager
def http_serve(cpu: int, part: Part) -> Iterator[str]:
    """Runs http.serve on a CPU; yields the address of a page."""
    port = free_port()
    params = {"port": port, "cpus": [cpu], "body_bytes": part.body_bytes}
    params["duration_ns"] = 600_000_000_000
    command = [probe_path(), "run", "http.serve", "--params", json.dumps(params)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for(port)
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.terminate()


def wait_for(port: int) -> None:
    """Waits until a server accepts connections."""
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError(f"No server listens on port {port}")


def user_agent() -> str:
    """The User-Agent header of http.load."""
    return version(probe_path(), "version").replace("-probe ", "/")


def children_cpu_s() -> float:
    """CPU time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ours(url: str, part: Part, args: argparse.Namespace) -> Result:
    """One trial of http.load; its CPU time includes its start and warm-up, as the others' do."""
    params = {
        "url": url,
        "connections": part.connections,
        "cpus": [args.cpu] if part.is_pinned else [],
        "duration_ns": args.seconds * 1_000_000_000,
        "warmup_ns": 0,
        "expected_body_bytes": part.body_bytes,
        **part.params,
    }
    before_s = children_cpu_s()
    samples = run_probe("http.load", params)
    used_s = children_cpu_s() - before_s
    errors = [s for s in samples if s["metric"] == "errors_count" and s["value"] > 0]
    if errors:
        raise RuntimeError(f"http.load met errors: {errors}")
    return one_value(samples, "requests_per_s"), used_s / one_value(samples, "completed_count")


def theirs(url: str, part: Part, args: argparse.Namespace) -> Result:
    """One run of the other tool with one thread, on the same CPU."""
    duration = f"-D{args.seconds}" if part.tool == "h2load" else f"-d{args.seconds}s"
    pinned = ["taskset", "-c", str(args.cpu)] if part.is_pinned else []
    command = [*pinned, part.tool, "-t1", f"-c{part.connections}"]
    if part.tool == "wrk":
        command += ["-H", f"User-Agent: {user_agent()}"]
    command += [duration, *part.options, url]
    before_s = children_cpu_s()
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    used_s = children_cpu_s() - before_s
    rate, count = counts_of(part.tool, done.stdout)
    return rate, used_s / count


def counts_of(tool: str, text: str) -> tuple[float, float]:
    """Returns rate and number of the requests that a tool reports."""
    if tool == "h2load":
        rate = re.search(r"finished in \S+, ([0-9.]+) req/s", text)
        count = re.search(r"(\d+) succeeded, 0 failed", text)
    else:
        rate = re.search(r"Requests/sec:\s*([0-9.]+)", text)
        count = re.search(r"(\d+) requests in", text)
    if rate is None or count is None or "Socket errors" in text or "Non-2xx" in text:
        raise RuntimeError(f"{tool}: {text}")
    return float(rate[1]), float(count[1])


def compare(url: str, part: Part, args: argparse.Namespace) -> list[Row]:
    """Alternates both and compares rate and CPU time of the same rounds."""
    runs = {"ours": lambda: ours(url, part, args), "theirs": lambda: theirs(url, part, args)}
    values = alternate(runs, args.rounds, args.seed)
    rows = []
    for index, name, unit, bound in (
        (0, "rate", "requests_per_s", (part.rate_bound, None)),
        (1, "CPU per request", "s", (None, 1.0)),
    ):
        mine, other = ([result[index] for result in values[key]] for key in ("ours", "theirs"))
        rows.append(Row(name, unit, mine, other, paired_ratio(mine, other), bound))
    return rows


def main() -> int:
    """Runs the comparison of one part; 0 when the bounds hold."""
    parser = arguments("http.load beside wrk and h2load: rate and CPU time per request")
    parser.add_argument("--part", choices=PARTS, default="http1", help="what is compared")
    parser.add_argument("--connections", type=int, help="connections instead of the part's")
    parser.add_argument("--seconds", type=int, default=2, help="length of a run")
    parser.add_argument("--cpu", type=int, default=0, help="CPU of the generators")
    parser.add_argument("--server-cpu", type=int, default=1, help="CPU of the server")
    args = parse(parser)
    part = PARTS[args.part]
    part = replace(part, connections=args.connections or part.connections)
    needed(part.tool, PACKAGES[part.tool])
    needed("nginx", "nginx-light")
    facts = machine()
    serve = nginx if part.server == "nginx" else http_serve
    with serve(args.server_cpu, part) as url:
        rows = compare(url, part, args)
    print_table(rows, part.tool)
    versions = {
        "probe": version(probe_path(), "version"),
        part.tool: version(part.tool, "--version"),
        "nginx": version("nginx", "-v"),
    }
    settings = {
        "part": args.part,
        "seconds": args.seconds,
        "connections": part.connections,
        "seed": args.seed,
        "nice": args.nice,
        "realtime": args.realtime,
    }
    slug = "http-load" if args.part == "http1" else f"http-load-{args.part}"
    return finish(slug, rows, versions, settings, facts, args.write)


if __name__ == "__main__":
    sys.exit(main())
