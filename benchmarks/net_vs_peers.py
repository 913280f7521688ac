"""The network benchmarks beside iperf3, sockperf and ping, through a pair of virtual ports.

Each round runs both programs once, in random order, between two network namespaces. Bounds: TCP of
one stream at least 0.97 times iperf3's with no more CPU time per byte; datagrams of 64 bytes
received per second at least 1.2 times iperf3's, by sendmmsg as well as by segmentation offload
(UDP_SEGMENT, UDP_GRO), which passes a pair of virtual ports in large messages; median round trips
at most 1.03 times sockperf's (UDP) and ping's (ICMP), one at a time; 1000 probes a second below 3 %
of a CPU.

At 50 echo requests a second ping waits with a timeout of its socket, which ends with a tick of the
kernel, every 24 ms, and ours with a timer of its own, when its time has come. What a CPU does first
after a sleep takes different time after either: a program that only waits, sends and receives had
1.05 times the round trips with a timer, in 11 of 11 alternated runs. That row shows this
difference, too.
Needs root.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from _paired import (
    Row,
    arguments,
    finish,
    interleave,
    machine,
    needed,
    paired_ratio,
    parse,
    print_table,
    probe_path,
    version,
)

NEAR, FAR = "10.99.78.1", "10.99.78.2"
TOKEN = "0123456789abcdef0123456789abcdef"
BLOCK_BYTES = 128 << 10
MAX_CPU_RATIO = 0.03
ECHOES_PER_S = 50
"""Slow enough for ping to sleep in between: at short intervals it polls."""


@dataclass(frozen=True)
class Pair:
    """Words that run a program at either end."""

    near: tuple[str, ...]
    far: tuple[str, ...]


@contextmanager
def ports() -> Iterator[Pair]:
    """Two namespaces with a pair of virtual ports between them; gone afterwards."""
    names = [f"neph-bench-net-{os.getpid()}-{end}" for end in ("a", "b")]
    try:
        for name in names:
            ip("netns", "add", name)
        ends = ("type", "veth", "peer", "name", "veth0", "netns", names[1])
        ip("-n", names[0], "link", "add", "veth0", *ends)
        for name, address in zip(names, (NEAR, FAR), strict=True):
            ip("-n", name, "address", "add", f"{address}/24", "dev", "veth0")
            for device in ("lo", "veth0"):
                ip("-n", name, "link", "set", device, "up")
        inside = [("ip", "netns", "exec", name) for name in names]
        yield Pair(inside[0], inside[1])
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def ip(*words: str) -> None:
    """Runs ip; CalledProcessError when it refuses."""
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Program:
    """A program whose CPU time counts, with pipes to its standard streams."""

    def __init__(self, words: Sequence[str]) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True)
        self.cpu_s = 0.0

    def say(self, line: str) -> None:
        """Writes a line to its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def line(self) -> Any:
        """The next line of JSON that it prints."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def end(self) -> str:
        """What it prints until it ends; its CPU time is known then. RuntimeError if it fails."""
        assert self.process.stdout is not None
        text = self.process.stdout.read()
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_s = usage.ru_utime + usage.ru_stime
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
        if self.process.returncode != 0:
            raise RuntimeError(f"{self.process.args}: {text[-300:]}")
        return text


def two_sided(
    pair: Pair, benchmark: str, params: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], float]:
    """One trial of a two-sided benchmark: its samples, and the CPU seconds of both sides."""
    words = [probe_path(), "serve", benchmark, "--params", "{}", "--control", "--bind", FAR]
    server = Program([*pair.far, *words])
    words = [probe_path(), "run", benchmark, "--params", json.dumps(params), "--control"]
    client = Program([*pair.near, *words])
    server.say(f"token {TOKEN}")
    where = server.line()["ready"]
    peer = {"address": where["address"], "port": where["port"], "token": TOKEN}
    client.say("peer " + json.dumps(peer))
    client.line()
    client.say("go")
    samples = [json.loads(line) for line in client.end().splitlines()]
    server.end()
    return samples[:-1], server.cpu_s + client.cpu_s


def one_sided(
    pair: Pair, benchmark: str, params: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], float]:
    """One trial of a benchmark without a far side: its samples and its CPU time in seconds."""
    words = [probe_path(), "run", benchmark, "--params", json.dumps(params)]
    program = Program([*pair.near, *words])
    samples = [json.loads(line) for line in program.end().splitlines()]
    return samples[:-1], program.cpu_s


def value(samples: Sequence[Mapping[str, Any]], metric: str) -> float:
    """The only value of a metric."""
    (found,) = [float(s["value"]) for s in samples if s["metric"] == metric]
    return found


def median(samples: Sequence[Mapping[str, Any]], metric: str) -> float:
    """The median of a histogram."""
    pairs = sorted((s["value"], s["count"]) for s in samples if s["metric"] == metric)
    left = sum(count for _, count in pairs) / 2
    for number, count in pairs:
        left -= count
        if left <= 0:
            return float(number)
    raise LookupError(f"no {metric}")


def iperf3(pair: Pair, *options: str) -> tuple[dict[str, Any], float]:
    """One run of iperf3: its report, and the CPU time of both sides in seconds."""
    server = Program([*pair.far, "iperf3", "--server", "--one-off", "--bind", FAR])
    wait_for(pair.far, "-ltnH", ":5201")
    client = Program([*pair.near, "iperf3", "--client", FAR, "--json", *options])
    report = json.loads(client.end())
    server.end()
    return report, server.cpu_s + client.cpu_s


def wait_for(inside: Sequence[str], kind: str, port: str) -> None:
    """Waits until a port is listened at. RuntimeError after five seconds."""
    for _ in range(500):
        seen = subprocess.run([*inside, "ss", kind], capture_output=True, text=True, check=True)
        if port in seen.stdout:
            return
        time.sleep(0.01)
    raise RuntimeError(f"Nothing listens at {port}.")


class Comparison:
    """The alternatives; each remembers the second figure that its run yields beside the first."""

    def __init__(self, pair: Pair, seconds: int) -> None:
        self.pair = pair
        self.seconds = seconds
        self.cpu: dict[str, list[float]] = {"ours": [], "theirs": []}

    def tcp(self) -> float:
        """Bytes per second of net.throughput; CPU seconds per GB beside it."""
        params = {"duration_ns": self.seconds * 1_000_000_000, "send_bytes": BLOCK_BYTES}
        samples, cpu_s = two_sided(self.pair, "net.throughput", params)
        self.cpu["ours"].append(cpu_s / value(samples, "sent_bytes") * 1e9)
        return value(samples, "goodput_bytes_per_s")

    def tcp_iperf3(self) -> float:
        """Bytes per second of iperf3; CPU seconds per GB beside it."""
        report, cpu_s = iperf3(self.pair, "--time", str(self.seconds), "--length", "128K")
        received = report["end"]["sum_received"]
        self.cpu["theirs"].append(cpu_s / received["bytes"] * 1e9)
        return float(received["bits_per_second"]) / 8

    def datagrams(self, *, offload: bool = False) -> float:
        """Datagrams of 64 bytes received per second. offload: the kernel cuts and joins them."""
        params = {
            "protocol": "udp",
            "rate_bits_per_s": 0,
            "packet_bytes": 64,
            "duration_ns": self.seconds * 1_000_000_000,
            "wait_ns": 200_000_000,
            "segmentation_offload": offload,
        }
        return value(two_sided(self.pair, "net.throughput", params)[0], "received_per_s")

    def datagrams_iperf3(self) -> float:
        """The same of iperf3, without a limit to its rate."""
        options = ("--udp", "--bitrate", "0", "--length", "64", "--time", str(self.seconds))
        end = iperf3(self.pair, *options)[0]["end"]["sum"]
        return float((end["packets"] - end["lost_packets"]) / end["seconds"])

    def round_trip(self) -> float:
        """Median round trip of datagrams of 64 bytes, one at a time, in ns."""
        params = {"rate_per_s": 0, "duration_ns": self.seconds * 1_000_000_000}
        return median(two_sided(self.pair, "net.rtt", params)[0], "rtt_sent_ns")

    def round_trip_sockperf(self) -> float:
        """The same of sockperf, in its mode ping-pong."""
        address = ("--ip", FAR, "--port", "11111")
        quiet = subprocess.DEVNULL
        words = [*self.pair.far, "sockperf", "server", *address]
        with subprocess.Popen(words, stdout=quiet, stderr=quiet) as server:
            try:
                wait_for(self.pair.far, "-lunH", ":11111")
                options = ("--full-rtt", "--msg-size", "64", "--time", str(self.seconds))
                words = [*self.pair.near, "sockperf", "ping-pong", *address, *options]
                done = subprocess.run(words, capture_output=True, text=True, check=True)
            finally:
                server.terminate()
        found = re.search(r"percentile 50\.000\s*=\s*([\d.]+)", done.stdout)
        assert found is not None, done.stdout
        return float(found[1]) * 1000

    def echo(self, per_s: int) -> float:
        """Median round trip of echo requests until the kernel has the answer, in ns.

        per_s: 0 for each when the one before was answered.
        """
        params = {
            "protocol": "icmp",
            "host": FAR,
            "authorised_hosts": [FAR],
            "packet_bytes": 56,
            "rate_per_s": per_s,
            "duration_ns": self.seconds * 1_000_000_000,
        }
        return median(one_sided(self.pair, "net.rtt", params)[0], "rtt_kernel_ns")

    def echo_ping(self, per_s: int) -> float:
        """The same of ping, which shows whole microseconds: the median of grouped values."""
        pace = ["-A", "-w", str(self.seconds)]
        if per_s:
            pace = ["-i", str(1 / per_s), "-c", str(self.seconds * per_s)]
        words = [*self.pair.near, "ping", *pace, FAR]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        times = [float(text) * 1000 for text in re.findall(r"time=([\d.]+) ms", done.stdout)]
        return statistics.median_grouped(times, 1) * 1000

    def probing_cpu(self) -> float:
        """CPUs used by 1000 echo requests per second."""
        params = {
            "protocol": "icmp",
            "host": FAR,
            "authorised_hosts": [FAR],
            "duration_ns": 5 * self.seconds * 1_000_000_000,
            "wait_ns": 100_000_000,
        }
        return one_sided(self.pair, "net.rtt", params)[1] / (5 * self.seconds)


def measure(
    name: str,
    unit: str,
    alternatives: tuple[Callable[[], float], Callable[[], float]],
    bound: tuple[float | None, float | None],
    args: argparse.Namespace,
) -> Row:
    """One row of alternated pairs."""
    ours, theirs = alternatives
    values = interleave({"ours": ours, "theirs": theirs}, args.rounds, args.seed, name)
    return row(name, unit, values, bound)


def row(
    name: str,
    unit: str,
    values: Mapping[str, list[float]],
    bound: tuple[float | None, float | None],
) -> Row:
    """A row of values that were taken already."""
    ours, theirs = values["ours"], values["theirs"]
    return Row(name, unit, ours, theirs, paired_ratio(ours, theirs), bound)


def compare_all(pair: Pair, args: argparse.Namespace) -> list[Row]:
    """Every comparison that was asked for."""
    both = Comparison(pair, args.seconds)
    rows = []
    if "tcp" in args.only:
        rows.append(
            measure(
                "TCP, one stream",
                "bytes_per_s",
                (both.tcp, both.tcp_iperf3),
                (0.97, None),
                args,
            )
        )
        rows.append(row("TCP, CPU per GB", "s_per_gb", both.cpu, (None, 1.0)))
    if "udp" in args.only:
        functions = (both.datagrams, both.datagrams_iperf3)
        rows.append(measure("UDP, 64 bytes", "per_s", functions, (1.2, None), args))
        functions = (partial(both.datagrams, offload=True), both.datagrams_iperf3)
        rows.append(measure("UDP, 64 bytes, offload", "per_s", functions, (1.2, None), args))
    if "rtt" in args.only:
        functions = (both.round_trip, both.round_trip_sockperf)
        rows.append(measure("UDP round trip", "ns", functions, (None, 1.03), args))
    if "icmp" in args.only:
        for name, per_s in (("ICMP round trip", 0), ("ICMP, 50 per s", ECHOES_PER_S)):
            functions = (partial(both.echo, per_s), partial(both.echo_ping, per_s))
            rows.append(measure(name, "ns", functions, (None, 1.03), args))
    if "cpu" in args.only:
        functions = (both.probing_cpu, lambda: MAX_CPU_RATIO)
        rows.append(measure("CPU of 1000 probes/s", "cpus", functions, (None, 1.0), args))
    return rows


def main() -> int:
    """Runs the comparisons; 0 when all bounds hold."""
    parser = arguments("The network benchmarks beside iperf3, sockperf and ping")
    parser.add_argument("--seconds", type=int, default=1, help="counted time of a trial")
    parts = ["tcp", "udp", "rtt", "icmp", "cpu"]
    parser.add_argument("--only", nargs="+", choices=parts, default=parts, help="comparisons")
    args = parse(parser)
    os.environ.setdefault("LC_ALL", "C")
    for tool, package in (("iperf3", "iperf3"), ("sockperf", "sockperf"), ("ping", "iputils-ping")):
        needed(tool, package)
    facts = machine()
    with ports() as pair:
        rows = compare_all(pair, args)
    print_table(rows, "peer")
    versions = {
        "probe": version(probe_path(), "version"),
        "iperf3": version("iperf3", "--version"),
        "sockperf": version("sockperf", "--version"),
        "ping": version("ping", "-V"),
    }
    settings = {"seconds": args.seconds, "seed": args.seed, "nice": args.nice}
    return finish("net-vs-peers", rows, versions, settings, facts, args.write)


if __name__ == "__main__":
    sys.exit(main())
