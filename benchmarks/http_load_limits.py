"""Limits of http.load on loopback: lateness of sending by rate, memory of 10,000 connections.

The server, http.serve, has one CPU and the generator another one. Part `lateness`: an open loop
with Poisson arrivals at several rates, with and without busy waiting before each request; the 99th
percentile of `send_delay_ns`, in rounds of random order. Part `connections`: 10,000 connections in
an open loop; the resident memory of the generator, and whether all connections were opened and
nothing failed. Bounds: 100 us at 20,000 requests per second with busy waiting; 250 MB.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from _paired import (
    alternate,
    arguments,
    machine,
    median_of,
    one_value,
    parse,
    probe_path,
    run_probe,
    version,
    write_result,
)
from http_load_vs_wrk import PARTS, http_serve

RATES_PER_S = (5_000, 10_000, 20_000, 40_000)
SPIN_NS = 50_000
DELAY_BOUND_NS, BOUND_RATE_PER_S = 100_000, 20_000
CONNECTIONS = 10_000
MEMORY_BOUND_BYTES = 250_000_000


def quantile_of(samples: Sequence[Mapping[str, Any]], metric: str, q: float) -> float:
    """The smallest value of a histogram that a part q of its values does not exceed."""
    pairs = sorted((s["value"], s["count"]) for s in samples if s["metric"] == metric)
    rank = math.ceil(q * sum(count for _, count in pairs))
    for value, count in pairs:
        rank -= count
        if rank <= 0:
            return float(value)
    raise LookupError(f"no value of {metric}")


def open_loop(url: str, args: argparse.Namespace, **params: Any) -> dict[str, Any]:
    """Parameters of an open loop with Poisson arrivals on the generator's CPU."""
    common = {"url": url, "arrivals": "poisson", "cpus": [args.cpu], "seed": args.seed}
    return {**common, "duration_ns": int(args.seconds * 1e9), **params}


def late_ns(url: str, args: argparse.Namespace, rate_per_s: int, spin_ns: int) -> float:
    """99th percentile of the time by which one trial sent late."""
    trial = {"connections": 100, "rate_per_s": rate_per_s, "spin_ns": spin_ns}
    samples = run_probe("http.load", open_loop(url, args, **trial))
    return quantile_of(samples, "send_delay_ns", 0.99)


def lateness(url: str, args: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """The 99th percentile by rate and busy waiting; whether the bound holds with busy waiting."""
    cases = {(rate, spin): rate for rate in RATES_PER_S for spin in (0, SPIN_NS)}
    runs = {case: (lambda case=case: late_ns(url, args, *case)) for case in cases}
    found = {}
    for (rate, spin), values in alternate(runs, args.rounds, args.seed).items():
        p99 = median_of(values)
        found[f"{rate}/s, spin_ns {spin}"] = {**asdict(p99), "rounds": values}
        print(
            f"{rate:>7}/s, spin_ns {spin:>6}: p99 of the send delay {p99.value / 1e3:8.1f} us "
            f"[{p99.low / 1e3:.1f}, {p99.high / 1e3:.1f}], n={p99.n}"
        )
    held = found[f"{BOUND_RATE_PER_S}/s, spin_ns {SPIN_NS}"]["value"] < DELAY_BOUND_NS
    return found, held


def many_connections(url: str, args: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """Memory of a generator with many connections; whether it held and all of them worked."""
    trial = {"connections": CONNECTIONS, "rate_per_s": 2 * CONNECTIONS, "duration_ns": 10**9}
    params = open_loop(url, args, **trial, warmup_ns=0)
    command = [probe_path(), "run", "http.load", "--params", json.dumps(params)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        samples = [json.loads(line) for line in process.stdout][:-1]
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"http.load ended with {process.returncode}")
    errors = sum(s["value"] for s in samples if s["metric"] == "errors_count")
    found = {
        "connections": one_value(samples, "connections_count"),
        "completed": one_value(samples, "completed_count"),
        "errors": errors,
        "memory_bytes": usage.ru_maxrss * 1024,
    }
    print("  ".join(f"{name} {value:.0f}" for name, value in found.items()))
    works = found["connections"] == CONNECTIONS <= found["completed"] and errors == 0
    return found, works and found["memory_bytes"] < MEMORY_BOUND_BYTES


PARTS_HERE = {"lateness": lateness, "connections": many_connections}


def main() -> int:
    """Measures one part; 0 when its bound holds."""
    parser = arguments("http.load: lateness of sending by rate, memory of 10,000 connections")
    parser.add_argument("--part", choices=PARTS_HERE, default="lateness", help="what is measured")
    parser.add_argument("--seconds", type=float, default=0.3, help="length of a run")
    parser.add_argument("--cpu", type=int, default=0, help="CPU of the generator")
    parser.add_argument("--server-cpu", type=int, default=1, help="CPU of the server")
    args = parse(parser)
    facts = machine()
    with http_serve(args.server_cpu, PARTS["serve"]) as url:
        found, held = PARTS_HERE[args.part](url, args)
    print("holds" if held else "fails")
    if args.write:
        record = {"machine": facts, "versions": {"probe": version(probe_path(), "version")}}
        settings = {"part": args.part, "seconds": args.seconds, "rounds": args.rounds}
        write_result(f"http-load-{args.part}", {**record, "settings": settings, "found": found})
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
