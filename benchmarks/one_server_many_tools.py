"""One web server seen by each tool: closed beside open loop, without and with a planted stall.

The same nginx (166 bytes, one worker) and the same `http.serve` with a stall of 1 s in every 10 s
are loaded by every load generator, in random order within each round. What a tool reports of the
stall is held beside what the schedule of the stall says about requests at a constant rate. There is
no bound: the tools do different things on purpose; docs/how-to/third-party-tools.md has reasons.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from _paired import machine, version, write_result

from nephoscope.catalog.adapters import ADAPTERS
from nephoscope.measure.targets import parse, session
from nephoscope.measure.targets.base import Peer, TargetTrial
from nephoscope.measure.targets.probe.target import Target
from nephoscope.stats.statistics.histograms import quantile_of_counts

BODY_BYTES = 166
STALL_EVERY_S, STALL_S = 10.0, 1.0
DEADLINE_S = 180.0
FIGURES = (
    "requests_per_s",
    "latency_mean_ns",
    "latency_p50_ns",
    "latency_p99_ns",
    "latency_max_ns",
    "corrected_p99_ns",
)
Figures = dict[str, float]


def tools(args: argparse.Namespace) -> dict[str, tuple[str, dict[str, Any]]]:
    """Name of a row -> benchmark and parameters."""
    connections, duration_ns = args.connections, args.seconds * 1_000_000_000
    rate = args.rate
    many = {"connections": connections}
    return {
        "ab (closed)": ("ab", {**many, "requests": args.requests}),
        "h2load (closed)": (
            "h2load",
            {**many, "requests": args.requests, "protocol": "http/1.1"},
        ),
        "siege (closed)": (
            "siege",
            {**many, "keep_alive": True, "requests": args.requests // connections},
        ),
        "wrk (closed)": ("wrk", {**many, "duration_ns": duration_ns}),
        "http.load (closed)": ("http.load", {**many, "duration_ns": duration_ns}),
        "httperf (open)": ("httperf", {"rate": rate, "connections": rate * args.seconds}),
        "http.load (open)": (
            "http.load",
            {
                "connections": 1500,
                "arrivals": "constant",
                "rate_per_s": float(rate),
                "duration_ns": duration_ns,
            },
        ),
    }


async def measured(target: Target, peer: Peer, name: str, params: Mapping[str, Any]) -> Figures:
    """Returns the figures of one trial against a server that runs."""
    if name in ADAPTERS:
        near = await session.prepare(target, name, params, deadline_s=DEADLINE_S, peer=peer)
        await session.go([near])
        trial = await near.running.result(DEADLINE_S)
    else:
        url = f"http://{peer.address}:{peer.port}/"
        trial = await target.run(name, {**params, "url": url}, DEADLINE_S)
    if trial.failure is not None:
        raise RuntimeError(f"{name}: {trial.failure}")
    return figures(trial)


def figures(trial: TargetTrial) -> Figures:
    """Returns a trial's figures; those of a histogram from its bins."""
    values = {sample.metric: sample.value for sample in trial.samples}
    bins = Counter[float]()
    for sample in trial.samples:
        if sample.metric == "latency_ns":
            bins[sample.value] += sample.count
    if bins:
        edges = np.array(sorted(bins))
        counts = np.array([bins[edge] for edge in edges])
        values["latency_mean_ns"] = float(np.average(edges, weights=counts))
        values["latency_max_ns"] = float(edges[-1])
        for percent in (50, 99):
            quantile = quantile_of_counts(edges, counts, percent / 100)
            values[f"latency_p{percent}_ns"] = float(quantile)
    return {name: values[name] for name in FIGURES if name in values}


def expected() -> Figures:
    """Returns what requests at even intervals see of the stall, by its schedule alone."""
    share = STALL_S / STALL_EVERY_S
    return {
        "latency_mean_ns": share * STALL_S / 2 * 1e9,
        "latency_p99_ns": STALL_S * (1 - 0.01 / share) * 1e9,
        "latency_max_ns": STALL_S * 1e9,
    }


async def compare(args: argparse.Namespace) -> dict[str, dict[str, list[Figures]]]:
    """Returns server -> row -> figures of each round."""
    order, rows = random.Random(args.seed), tools(args)
    stall = {"stall_every_ns": int(STALL_EVERY_S * 1e9), "stall_ns": int(STALL_S * 1e9)}
    servers = {
        "nginx": ("wrk", {"body_bytes": BODY_BYTES}),
        "http.serve with a stall": (
            "http.serve",
            {"body_bytes": BODY_BYTES, "duration_ns": 0, **stall},
        ),
    }
    results: dict[str, dict[str, list[Figures]]] = {}
    target = parse("local").make()
    try:
        await target.open()
        for server, (benchmark, params) in servers.items():
            results[server] = {name: [] for name in rows}
            limit_s = args.rounds * len(rows) * DEADLINE_S
            serving = await session.serve(target, target, benchmark, params, deadline_s=limit_s)
            assert serving.peer is not None
            try:
                await session.go([serving])
                if "stall" in server:
                    # From then on every run as long as a period meets a whole stall.
                    await asyncio.sleep(STALL_EVERY_S)
                for number in range(args.rounds):
                    names = list(rows)
                    order.shuffle(names)
                    for name in names:
                        figures_seen = await measured(target, serving.peer, *rows[name])
                        results[server][name].append(figures_seen)
                    print(f"{server}: round {number + 1}/{args.rounds}", file=sys.stderr)
                await serving.stop(30)
            finally:
                await serving.end()
    finally:
        await target.close()
    return results


def medians(rounds: list[Figures]) -> Figures:
    """Returns the median over the rounds of each figure."""
    return {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}


def print_tables(results: Mapping[str, Mapping[str, list[Figures]]]) -> None:
    """Prints a table for each server: medians over the rounds."""
    for server, rows in results.items():
        heads = ("requests/s", "mean", "p50", "p99", "maximum", "corrected p99")
        print(f"\n{server}\n{'':22}" + "".join(f"{head:>15}" for head in heads))
        lines = {name: medians(rounds) for name, rounds in rows.items()}
        if server != "nginx":
            lines["by the schedule"] = expected()
        for name, values in lines.items():
            cells = [f"{values['requests_per_s']:,.0f}" if "requests_per_s" in values else "-"]
            times = FIGURES[1:]
            cells += [f"{values[t] / 1e6:.3f} ms" if t in values else "-" for t in times]
            print(f"{name:22}" + "".join(f"{cell:>15}" for cell in cells))


def main() -> int:
    """Runs the comparison."""
    parser = argparse.ArgumentParser(description="one web server seen by each load generator")
    parser.add_argument("--rounds", type=int, default=3, help="rounds")
    parser.add_argument("--seed", type=int, default=1, help="seed of the order inside rounds")
    parser.add_argument("--seconds", type=int, default=10, help="length of a timed run")
    parser.add_argument("--connections", type=int, default=10, help="connections of closed loops")
    parser.add_argument("--requests", type=int, default=400_000, help="requests of counted runs")
    parser.add_argument("--rate", type=int, default=1_000, help="requests a second of open loops")
    parser.add_argument("--write", action="store_true", help="store under benchmarks/results")
    args = parser.parse_args()
    facts = machine()
    results = asyncio.run(compare(args))
    print_tables(results)
    if args.write:
        versions = {"nginx": version("nginx", "-v"), **tool_versions()}
        settings = {name: value for name, value in vars(args).items() if name != "write"}
        settings |= {"stall_every_s": STALL_EVERY_S, "stall_s": STALL_S}
        record = {"machine": facts, "versions": versions, "settings": settings, "rounds": results}
        write_result("one-server-many-tools", record)
    return 0


def tool_versions() -> dict[str, str]:
    """Returns the version of each tool, as its adapter reads it."""

    async def ask() -> dict[str, str]:
        target = parse("local").make()
        try:
            await target.open()
            names = ("ab", "h2load", "httperf", "siege", "wrk")
            return {name: await target.tool(name) for name in names}
        finally:
            await target.close()

    return asyncio.run(ask())


if __name__ == "__main__":
    sys.exit(main())
