"""kv.load beside redis-benchmark: GET requests per second against Redis on loopback.

Both ask 50 connections for the same keys of the same server, which has a CPU of its own. Parts:
without pipelining (plain) and with 16 requests in flight on each connection (pipelined). Bound: at
least the same rate.
"""

from __future__ import annotations

import argparse
import csv
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

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

PREFIX = "nephoscope:"
PARTS = {"plain": 1, "pipelined": 16}


@contextmanager
def redis(cpu: int) -> Iterator[int]:
    """Runs a Redis server without persistence on a CPU; yields its port."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = ["taskset", "-c", str(cpu), "redis-server", "--bind", "127.0.0.1", "--save", ""]
        command += ["--port", str(port), "--appendonly", "no", "--dir", folder]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
            try:
                wait_for(port)
                yield port
            finally:
                server.terminate()


def wait_for(port: int) -> None:
    """Waits until a server listens."""
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise RuntimeError(f"redis-server does not listen at port {port}")


def ours(port: int, pipeline: int, args: argparse.Namespace, *, fill: bool = False) -> float:
    """GET requests per second of one trial of kv.load; all keys have to be there."""
    params = {
        "port": port,
        "connections": args.connections,
        "pipeline": pipeline,
        "keys": args.keys,
        "key_prefix": PREFIX,
        "value_bytes": args.value_bytes,
        "fill": fill,
        "delete_keys": False,
        "cpus": [args.cpu],
        "warmup_ns": 100_000_000,
        "duration_ns": int(args.seconds * 1e9),
    }
    samples = run_probe("kv.load", params)
    errors = [s for s in samples if s["metric"] == "errors_count" and s["value"] > 0]
    if errors or one_value(samples, "misses_count"):
        raise RuntimeError(f"kv.load met errors or misses: {errors}")
    return one_value(samples, "requests_per_s")


def redis_benchmark(port: int, pipeline: int, requests: int, args: argparse.Namespace) -> float:
    """The rate that redis-benchmark reports for so many GET requests, on the same keys."""
    command = ["taskset", "-c", str(args.cpu), "redis-benchmark", "-p", str(port), "--csv"]
    command += ["-c", str(args.connections), "-P", str(pipeline), "-n", str(requests)]
    command += ["-r", str(args.keys), "GET", f"{PREFIX}s__rand_int__"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    rows = list(csv.DictReader(done.stdout.splitlines()))
    if len(rows) != 1:
        raise RuntimeError(f"redis-benchmark: {done.stdout}{done.stderr}")
    return float(rows[0]["rps"])


def compare(port: int, pipeline: int, args: argparse.Namespace) -> Row:
    """Alternates both and compares the rates of the same rounds."""
    # redis-benchmark takes a number of requests: as many as last for the length of a run.
    requests = int(redis_benchmark(port, pipeline, 50_000, args) * args.seconds)
    runs = {
        "ours": lambda: ours(port, pipeline, args),
        "theirs": lambda: redis_benchmark(port, pipeline, requests, args),
    }
    values = alternate(runs, args.rounds, args.seed)
    mine, theirs = values["ours"], values["theirs"]
    name = "GET" if pipeline == 1 else f"GET, pipeline {pipeline}"
    ratio = paired_ratio(mine, theirs)
    return Row(name, "requests_per_s", mine, theirs, ratio, (1.0, None))


def main() -> int:
    """Runs the comparison; 0 when the bounds hold."""
    parser = arguments("kv.load beside redis-benchmark: GET requests per second against Redis")
    parser.add_argument("--part", choices=PARTS, default="plain", help="what is compared")
    parser.add_argument("--seconds", type=float, default=2, help="length of a run")
    parser.add_argument("--connections", type=int, default=50, help="number of connections")
    parser.add_argument("--keys", type=int, default=10_000, help="number of keys")
    parser.add_argument("--value-bytes", type=int, default=3, help="size of the values")
    parser.add_argument("--cpu", type=int, default=0, help="CPU of the generators")
    parser.add_argument("--server-cpu", type=int, default=1, help="CPU of the server")
    args = parse(parser)
    needed("redis-benchmark", "redis-tools")
    needed("redis-server", "redis-server")
    facts = machine()
    with redis(args.server_cpu) as port:
        ours(port, 1, args, fill=True)
        rows = [compare(port, PARTS[args.part], args)]
    print_table(rows, "redis-benchmark")
    versions = {
        "probe": version(probe_path(), "version"),
        "redis-benchmark": version("redis-benchmark", "--version"),
        "redis-server": version("redis-server", "--version"),
    }
    settings = {
        "part": args.part,
        "seconds": args.seconds,
        "connections": args.connections,
        "keys": args.keys,
        "value_bytes": args.value_bytes,
        "seed": args.seed,
        "nice": args.nice,
        "realtime": args.realtime,
    }
    slug = "kv-load" if args.part == "plain" else f"kv-load-{args.part}"
    return finish(slug, rows, versions, settings, facts, args.write)


if __name__ == "__main__":
    sys.exit(main())
