"""Rate, delay, jitter and loss of a lab's link, by native benchmarks and third-party tools side by
side: all are held against what was set, and the cross-check of the run has them as pairs."""

from __future__ import annotations

import math
import secrets
import statistics
from pathlib import Path
from typing import Any

import pytest
from tests.attempts import attempt
from tests.tools import needs
from trials import needs_root

from nephoscope import catalog
from nephoscope.core.model import RunResult
from nephoscope.features.crosscheck.result import CrossCheck
from nephoscope.measure import runs
from nephoscope.measure.plans.files.load import from_text
from nephoscope.results import analyse_run
from nephoscope.store import Store

FAR = "10.83.0.20"
FIRST_LOST = "unable to read from stream socket: Resource temporarily unavailable"
PLAN = """
name: third-party
seed: 1
warmup: 0
lab:
  version: 1
  name: {name}
  network: 10.83.0.0/24
  hosts: {{a: {{}}, b: {{address: {far}}}}}
  links: {{wire: {{between: [a, b], {conditions}}}}}
targets: [{{name: a, kind: lab}}, {{name: b, kind: lab}}]
accept: [late_sends]
repeat: {{min: 3, max: 3}}
benchmarks:
"""
RATE = """
  - {benchmark: net.throughput, on: a, peer: b, params: {duration_ns: 2s}}
  - {benchmark: iperf3.tcp, on: a, peer: b, params: {duration_ns: 2s}}
"""
DELAY = f"""
  - {{benchmark: net.rtt, on: a, params: {{host: {FAR}, protocol: icmp, rate_per_s: 100}}}}
  - {{benchmark: ping, on: a, params: {{host: {FAR}, interval_ns: 10ms, probes: 100}}}}
  - {{benchmark: net.path, on: a, peer: b}}
  - {{benchmark: mtr, on: a, params: {{host: {FAR}, wait_ns: 1s}}}}
"""
WINDOW = """
  - benchmark: net.throughput
    on: a
    peer: b
    params: {duration_ns: 2s, congestion_control: reno}
    factors: {receive_buffer_bytes: [65536, 131072]}
"""
JITTER = """
  - benchmark: net.rtt
    on: a
    peer: b
    params: {duration_ns: 1s, rate_per_s: 200, wait_ns: 200ms, same_clock: true}
  - benchmark: net.throughput
    on: a
    peer: b
    params: {protocol: udp, duration_ns: 1s, rate_bits_per_s: 160000, packet_bytes: 100}
  - benchmark: iperf3.udp
    on: a
    peer: b
    params: {duration_ns: 1s, rate_bits_per_s: 160000, packet_bytes: 100}
"""
LOSS = f"""
  - benchmark: net.throughput
    on: a
    peer: b
    params: {{protocol: udp, duration_ns: 1s, rate_bits_per_s: 3200000, packet_bytes: 100}}
  - benchmark: iperf3.udp
    on: a
    peer: b
    params: {{duration_ns: 1s, rate_bits_per_s: 3200000, packet_bytes: 100}}
  - {{benchmark: net.rtt, on: a, peer: b, params: {{duration_ns: 1s, wait_ns: 200ms}}}}
  - {{benchmark: ping, on: a, params: {{host: {FAR}, interval_ns: 10ms, probes: 300}}}}
"""
pytestmark = [
    needs_root,
    pytest.mark.slow,
    needs("ip", "tc", "iperf3", "ping", "mtr"),
]


class Measured:
    """A run between two hosts of a lab whose link has the given conditions."""

    def __init__(self, folder: Path, conditions: str, benchmarks: str) -> None:
        name = f"t{secrets.token_hex(3)}"
        text = PLAN.format(name=name, far=FAR, conditions=conditions) + benchmarks
        plan = from_text(text, "plan.yaml", {}, catalog.load())
        self.result: RunResult = analyse_run.build(runs.execute(plan, Store(folder / name)))
        # iperf3 gives up when the datagram or the answer with which it begins is lost.
        unlucky = [trial for trial in self.result.invalid if FIRST_LOST in str(trial)]
        assert list(self.result.invalid) == unlucky
        assert not unlucky or "loss" in conditions

    def value(self, benchmark: str, metric: str, **factors: Any) -> float:
        """The only estimate of a metric among those with some factors."""
        (estimate,) = [
            line.estimate
            for line in self.result.metrics
            if (line.benchmark, line.metric) == (benchmark, metric)
            and factors.items() <= dict(line.factors).items()
        ]
        return estimate.value

    def median(self, benchmark: str, metric: str) -> float:
        """The median of all values of the run's only distribution of a metric."""
        (values,) = [
            [value for value, count in zip(*pair, strict=True) for _ in range(count)]
            for key, pair in self.result.histograms.items()
            if key[:2] == (benchmark, metric)
        ]
        return statistics.median(values)

    @property
    def figures(self) -> set[tuple[str, str]]:
        return {(line.benchmark, line.metric) for line in self.result.metrics}

    @property
    def pairs(self) -> set[tuple[str, str, str]]:
        check = self.result.part(CrossCheck)
        assert check is not None
        return {(line.native, line.tool, line.metric) for line in check.lines}


def held(bounds: dict[str, tuple[float, float, float]]) -> tuple[str, bool]:
    """Says each value with what was set, and whether all lie within their tolerances."""
    text = "; ".join(
        f"{name}: {value:.6g} of {truth:.6g} ± {tolerance:.2g}"
        for name, (value, truth, tolerance) in bounds.items()
    )
    inside = [abs(value - truth) <= tolerance for value, truth, tolerance in bounds.values()]
    return text, all(inside)


def test_the_rate_of_a_link(tmp_path: Path) -> None:
    # A segment of 1448 bytes is a frame of 1514.
    expected = 20e6 / 8 * 1448 / 1514

    def once() -> tuple[str, bool]:
        run = Measured(tmp_path, "rate: 20Mbit/s, delay: 5ms", RATE)
        assert ("net.throughput", "iperf3.tcp", "goodput_bytes_per_s") in run.pairs
        return held(
            {
                name: (run.value(name, "goodput_bytes_per_s"), expected, 0.03 * expected)
                for name in ("net.throughput", "iperf3.tcp")
            }
        )

    attempt("20 Mbit/s", once)


def test_the_delay_of_a_link(tmp_path: Path) -> None:
    delay_ns, tolerance_ns = 20e6, 0.5e6

    def once() -> tuple[str, bool]:
        run = Measured(tmp_path, "delay: 10ms, mtu: 1343", DELAY)
        assert run.value("net.path", "path_mtu_bytes") == 1343
        assert run.value("net.path", "hops_count") == run.value("mtr", "hops_count") == 1
        seen = {
            "net.rtt": run.median("net.rtt", "rtt_sent_ns"),
            "ping": run.median("ping", "rtt_sent_ns"),
            "net.path": run.median("net.path", "hop_rtt_ns"),
            "mtr": run.value("mtr", "hop_rtt_min_ns"),
        }
        return held({name: (ns, delay_ns, tolerance_ns) for name, ns in seen.items()})

    attempt("20 ms there and back", once)


def test_a_receive_buffer_bounds_what_is_under_way(tmp_path: Path) -> None:
    """The kernel sets twice the size, a part of which is its own bookkeeping: the window lies
    between the two."""
    round_trip_s = 0.04

    def once() -> tuple[str, bool]:
        run = Measured(tmp_path, "delay: 20ms", WINDOW)
        goodput = {
            size: run.value("net.throughput", "goodput_bytes_per_s", receive_buffer_bytes=size)
            for size in (65_536, 131_072)
        }
        return held(
            {
                f"{size} bytes": (value * round_trip_s, 1.5 * size, 0.5 * size)
                for size, value in goodput.items()
            }
        )

    attempt("40 ms there and back", once)


def test_the_jitter_of_a_link(tmp_path: Path) -> None:
    """Delays are uniform over 4 ms, and packets 5 ms apart, so that none waits for another: two
    independent delays differ by a third of the width on average."""
    mean_ns = 4e6 / 3
    # Of 200 differences the mean has a standard deviation of 5 %, and that of the filter of
    # RFC 3550, which remembers 16 of them, of 14 %; the median of three runs has less.
    of_mean_ns, of_filter_ns = 0.15 * mean_ns, 0.5 * mean_ns

    def once() -> tuple[str, bool]:
        run = Measured(tmp_path, "delay: 10ms, jitter: 2ms", JITTER)
        assert ("net.throughput", "iperf3.udp", "jitter_ns") in run.pairs
        bounds = {
            f"net.rtt, {way}": (
                run.value("net.rtt", "ipdv_mean_ns", direction=way),
                mean_ns,
                of_mean_ns,
            )
            for way in ("up", "down")
        }
        for name in ("net.rtt", "net.throughput", "iperf3.udp"):
            jitter_ns = run.value(name, "jitter_ns", direction="up")
            bounds[f"{name}, RFC 3550"] = (jitter_ns, mean_ns, of_filter_ns)
        return held(bounds)

    attempt("2 ms of jitter", once)


def test_the_loss_of_a_link(tmp_path: Path) -> None:
    each_way, there_and_back = 0.05, 1 - 0.95**2
    cases = [
        ("net.throughput", "up", each_way, 4000),
        ("iperf3.udp", "up", each_way, 4000),
        ("net.rtt", "up", each_way, 1000),
        ("net.rtt", "down", each_way, 950),
        ("net.rtt", "both", there_and_back, 1000),
        ("ping", "both", there_and_back, 300),
    ]

    def once() -> tuple[str, bool]:
        for _ in range(4):
            run = Measured(tmp_path, "loss: 5%", LOSS)
            # None of its three trials begins once in a thousand runs.
            if ("iperf3.udp", "loss_ratio") in run.figures:
                break
        assert ("net.throughput", "iperf3.udp", "loss_ratio") in run.pairs
        assert ("net.rtt", "ping", "loss_ratio") in run.pairs
        bounds = {}
        for name, way, loss, packets in cases:
            # 4.5 standard deviations of one run; the median of three has fewer.
            tolerance = 4.5 * math.sqrt(loss * (1 - loss) / packets)
            value = run.value(name, "loss_ratio", direction=way)
            bounds[f"{name}, {way}"] = (value, loss, tolerance)
        return held(bounds)

    attempt("5 % lost each way", once)
