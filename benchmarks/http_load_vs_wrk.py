"""http.load beside wrk: requests per second and CPU time per request against nginx on loopback.

nginx serves 166 bytes with one worker on one CPU, the generator runs on another one, with 100
connections that are kept alive. Bounds: at least wrk's rate, at most its CPU time per request.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from _paired import (
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

BODY_BYTES = 166
Result = tuple[float, float]
"""Requests per second, and CPU seconds of the generator per request."""

CONFIGURATION = """
daemon off; worker_processes 1; worker_cpu_affinity {mask}; pid {folder}/pid;
error_log {folder}/error.log; {user}
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 1000000000; open_file_cache max=10;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{ listen 127.0.0.1:{port} backlog=4096; root {folder}; }}
}}
"""


@contextmanager
def nginx(cpu: int) -> Iterator[str]:
    """Runs nginx on a CPU; yields the address of its only page."""
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        (folder / "index.html").write_bytes(b"x" * BODY_BYTES)
        user = "user root;" if os.geteuid() == 0 else ""
        text = CONFIGURATION.format(folder=name, mask=bin(1 << cpu)[2:], port=port, user=user)
        (folder / "nginx.conf").write_text(text)
        command = ["nginx", "-e", f"{name}/error.log", "-c", f"{name}/nginx.conf"]
        with subprocess.Popen(command) as server:
            try:
                url = f"http://127.0.0.1:{port}/"
                wait_for(url)
                yield url
            finally:
                server.terminate()


def wait_for(url: str) -> None:
    """Waits until a server answers."""
    for _ in range(200):
        try:
            with urllib.request.urlopen(url) as response:
                response.read()
                return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError(f"nginx does not answer at {url}")


def children_cpu_s() -> float:
    """CPU time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ours(url: str, args: argparse.Namespace) -> Result:
    """One trial of http.load; its CPU time includes its start and its warm-up, as wrk's does."""
    params = {
        "url": url,
        "connections": args.connections,
        "cpus": [args.cpu],
        "duration_ns": args.seconds * 1_000_000_000,
        "warmup_ns": 0,
        "expected_body_bytes": BODY_BYTES,
    }
    before_s = children_cpu_s()
    samples = run_probe("http.load", params)
    used_s = children_cpu_s() - before_s
    errors = [s for s in samples if s["metric"] == "errors_count" and s["value"] > 0]
    if errors:
        raise RuntimeError(f"http.load met errors: {errors}")
    return one_value(samples, "requests_per_s"), used_s / one_value(samples, "completed_count")


def wrk(url: str, args: argparse.Namespace) -> Result:
    """One run of wrk with one thread, on the same CPU."""
    command = ["taskset", "-c", str(args.cpu), "wrk", "-t1", f"-c{args.connections}"]
    command += [f"-d{args.seconds}s", url]
    before_s = children_cpu_s()
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    used_s = children_cpu_s() - before_s
    rate = re.search(r"Requests/sec:\s*([0-9.]+)", done.stdout)
    count = re.search(r"(\d+) requests in", done.stdout)
    if rate is None or count is None or "Socket errors" in done.stdout or "Non-2xx" in done.stdout:
        raise RuntimeError(f"wrk: {done.stdout}")
    return float(rate[1]), used_s / float(count[1])


def compare(url: str, args: argparse.Namespace) -> list[Row]:
    """Alternates both and compares rate and CPU time of the same rounds."""
    runs = {"ours": lambda: ours(url, args), "theirs": lambda: wrk(url, args)}
    values = alternate(runs, args.rounds, args.seed)
    rows = []
    for index, name, unit, bound in (
        (0, "rate", "requests_per_s", (1.0, None)),
        (1, "CPU per request", "s", (None, 1.0)),
    ):
        mine, theirs = ([result[index] for result in values[key]] for key in ("ours", "theirs"))
        rows.append(Row(name, unit, mine, theirs, paired_ratio(mine, theirs), bound))
    return rows


def main() -> int:
    """Runs the comparison; 0 when the bounds hold."""
    parser = arguments("http.load beside wrk: rate and CPU time per request against nginx")
    parser.add_argument("--seconds", type=int, default=2, help="length of a run")
    parser.add_argument("--connections", type=int, default=100, help="connections kept alive")
    parser.add_argument("--cpu", type=int, default=0, help="CPU of the generators")
    parser.add_argument("--server-cpu", type=int, default=1, help="CPU of nginx")
    args = parse(parser)
    needed("wrk", "wrk")
    needed("nginx", "nginx-light")
    facts = machine()
    with nginx(args.server_cpu) as url:
        rows = compare(url, args)
    print_table(rows, "wrk")
    versions = {
        "probe": version(probe_path(), "version"),
        "wrk": version("wrk", "--version"),
        "nginx": version("nginx", "-v"),
    }
    settings = {
        "seconds": args.seconds,
        "connections": args.connections,
        "seed": args.seed,
        "nice": args.nice,
        "realtime": args.realtime,
    }
    return finish("http-load", rows, versions, settings, facts, args.write)


if __name__ == "__main__":
    sys.exit(main())
