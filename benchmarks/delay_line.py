"""The delay line between two namespaces: what it forwards on one core, what it adds of its own.

Own latency: one-way times through the line with no delay set, minus those over a plain veth pair,
alternated; the kernel's own time of arrival. Throughput: a sender that the kernel cuts packets for,
the line pinned to one CPU; delivered packets by the line's own counters.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
from pathlib import Path
from typing import Any

from _paired import write_result

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "truth"))
from line_truth import Wire, both_ways

OWN_LATENCY_BOUND_NS = 60_000
BITS_BOUND_PER_S, PACKETS_BOUND_PER_S = 1e9, 80_000
SETTINGS = [(1472, 0), (1472, 50), (64, 0), (64, 50)]
"""Payload in bytes, delay in ms."""
# Student's t, two-sided 95 %, for the number of rounds less one.
T95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}


def interval(values: list[float]) -> dict[str, Any]:
    """Mean of the rounds and its t interval."""
    n = len(values)
    half = T95[n] * statistics.stdev(values) / math.sqrt(n)
    mean = statistics.fmean(values)
    return {"value": mean, "low": mean - half, "high": mean + half, "n": n, "rounds": values}


def quantile(values: list[int], q: float) -> int:
    """The smallest value that a part q of the values does not exceed."""
    return sorted(values)[math.ceil(q * len(values)) - 1]


def one_way_ns(wire: Wire, packets: int) -> list[int]:
    """One-way times of packets that are 2 ms apart."""
    wire.warm()
    return [delay for _, delay in wire.one_way(packets, 0.002)]


def own_latency(rounds: int, packets: int) -> dict[str, Any]:
    """p50 and p99 through the line, less the p50 of the plain pair of the same round."""
    added: dict[str, list[float]] = {"p50_ns": [], "p99_ns": []}
    for _ in range(rounds):
        with Wire(None) as wire:
            plain = quantile(one_way_ns(wire, packets), 0.5)
        with Wire(both_ways()) as wire:
            through = one_way_ns(wire, packets)
        added["p50_ns"].append(quantile(through, 0.5) - plain)
        added["p99_ns"].append(quantile(through, 0.99) - plain)
    return {name: interval(values) for name, values in added.items()} | {"packets": packets}


def forwarded(payload_bytes: int, delay_ms: int, rounds: int, seconds: float) -> dict[str, Any]:
    """Packets and bits a second, by wall time and by the line's own CPU time."""
    seen: dict[str, list[float]] = {
        "packets_per_s": [],
        "bits_per_s": [],
        "packets_per_cpu_s": [],
    }
    for _ in range(rounds):
        with Wire(both_ways(delay_ns=delay_ms * 1_000_000, limit_packets=100_000)) as wire:
            os.sched_setaffinity(wire.pid, sorted(os.sched_getaffinity(0))[-1:])
            wire.warm()
            before = wire.counters()
            took_s = wire.flood(payload_bytes, seconds)
            after = wire.counters()
        first, last = before["paths"][0], after["paths"][0]
        packets = last["delivered"] - first["delivered"]
        cpu_s = (after["cpu_ns"] - before["cpu_ns"]) / 1e9
        seen["packets_per_s"].append(packets / took_s)
        sent_bytes = last["delivered_bytes"] - first["delivered_bytes"]
        seen["bits_per_s"].append(sent_bytes * 8 / took_s)
        seen["packets_per_cpu_s"].append(packets / cpu_s)
    return {name: interval(values) for name, values in seen.items()}


def told(name: str, found: dict[str, Any], divisor: float, unit: str) -> str:
    """One line for people."""
    low, value, high = (found[key] / divisor for key in ("low", "value", "high"))
    return f"  {name}: {value:.4g} {unit} [{low:.4g}, {high:.4g}], n={found['n']}"


def main() -> int:
    """Measures, prints, returns 1 when a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the dated result")
    parser.add_argument("--rounds", type=int, default=5, choices=sorted(T95))
    parser.add_argument("--packets", type=int, default=500)
    options = parser.parse_args()
    latency = own_latency(options.rounds, options.packets)
    print(f"own latency, {options.packets} packets a round, 2 ms apart")
    print(told("p50", latency["p50_ns"], 1e3, "us"))
    print(told("p99", latency["p99_ns"], 1e3, "us"))
    held = latency["p50_ns"]["value"] < OWN_LATENCY_BOUND_NS
    through: dict[str, Any] = {}
    for payload_bytes, delay_ms in SETTINGS:
        found = forwarded(payload_bytes, delay_ms, options.rounds, 1.0)
        through[f"{payload_bytes} B, {delay_ms} ms"] = found
        print(f"payload {payload_bytes} B, delay {delay_ms} ms, the line on one CPU")
        print(told("packets", found["packets_per_s"], 1e3, "k/s"))
        print(told("bits", found["bits_per_s"], 1e9, "Gbit/s"))
        print(told("packets for each second of its CPU time", found["packets_per_cpu_s"], 1e3, "k"))
        held &= (
            found["bits_per_s"]["value"] >= BITS_BOUND_PER_S
            or found["packets_per_s"]["value"] >= PACKETS_BOUND_PER_S
        )
    print("held" if held else "NOT held")
    if options.write:
        bounds = {
            "own_latency_p50_ns": OWN_LATENCY_BOUND_NS,
            "bits_per_s": BITS_BOUND_PER_S,
            "packets_per_s": PACKETS_BOUND_PER_S,
        }
        record = {"kernel": os.uname().release, "cpus": os.cpu_count(), "bounds": bounds}
        # The sender needs a core too: beside other work the wall-clock rates are the sender's.
        record["load_1m"] = os.getloadavg()[0]
        record |= {"own_latency": latency, "forwarded": through, "held": held}
        write_result("delay-line", record)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
