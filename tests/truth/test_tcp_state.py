"""net.throughput and the network loads over a path whose delay and window the test sets: a window
of so many segments once a round trip is a rate, and TCP's own figures follow from it."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import mean, median
from typing import Any

import pytest
import veth
from channel import Controlled
from cpu_truth import group
from line_truth import Wire, both_ways
from tests import hardware
from tests.attempts import attempt
from tests.hardware import Feature
from trials import needs_root, real_time
from two_sided import measure

pytestmark = [
    needs_root,
    veth.needs_it,
    hardware.needs(Feature.TUN, Path("/dev/net/tun").exists()),
]

MS = 1_000_000
DELAY_MS, SEGMENTS, MSS = 10, 40, 1500 - 20 - 32
WINDOW_BYTES = SEGMENTS * MSS
FRAME_BYTES = MSS + 14 + 20 + 32


def limit_window(wire: Wire) -> None:
    """Bounds the congestion window of what the near side sends, from its second session on: the
    kernel takes such a bound from what it remembers of a destination."""
    route = ["198.18.0.0/24", "dev", "eth0", "src", wire.address(0), "cwnd", "lock", str(SEGMENTS)]
    veth.call(["ip", "-n", wire.names[0], "route", "replace", *route])
    wire.warm()
    measure("net.throughput", {"transfer_bytes": 1_000_000, "warmup_ns": 0}, path=wire)


RATES = (
    "goodput_bytes_per_s",
    "stream_goodput_bytes_per_s",
    "interval_goodput_bytes_per_s",
    "block_goodput_bytes_per_s",
    "timed_block_goodput_bytes_per_s",
    "interval_delivery_bytes_per_s",
)
ROUND_TRIPS = ("tcp_rtt_ns", "tcp_rtt_min_ns", "interval_tcp_rtt_ns")


@pytest.mark.truth("net.throughput", *RATES, *ROUND_TRIPS, "interval_congestion_window_bytes")
@pytest.mark.truth("net.throughput", "transfer_ns", "transfer_time_ratio", "sent_bytes")
@pytest.mark.truth("net.throughput", "congestion_window_limited_ratio")
def test_a_window_once_a_round_trip_is_the_rate() -> None:
    round_trip_s, carried = 2 * DELAY_MS / 1e3, 1_500_000
    params = {
        "duration_ns": 900 * MS,
        "warmup_ns": 0,
        "block_bytes": 5 * WINDOW_BYTES,
        # Twice what the window allows, in frames.
        "bottleneck_bits_per_s": 2 * 8 * SEGMENTS * FRAME_BYTES / round_trip_s,
    }

    def once() -> tuple[str, bool]:
        with real_time(inherited=True), Wire(both_ways(delay_ns=DELAY_MS * MS)) as wire:
            limit_window(wire)
            trial = measure("net.throughput", params, path=wire)
            transfer = measure("net.throughput", {"transfer_bytes": carried}, path=wire)
        assert transfer.one("sent_bytes") == carried
        windows = trial.series("interval_congestion_window_bytes")[1:]
        assert len(windows) >= 6
        assert set(windows) == {WINDOW_BYTES}
        # What the machine adds to a round trip lowers every rate by the same share.
        rtt_s = median(trial.series("interval_tcp_rtt_ns")) / 1e9
        rate = WINDOW_BYTES / rtt_s
        # The first and the last interval are not full.
        intervals = trial.series("interval_goodput_bytes_per_s")[1:-1]
        seen = {
            "goodput": trial.one("goodput_bytes_per_s") / rate,
            "stream": trial.one("stream_goodput_bytes_per_s") / rate,
            "intervals": mean(intervals) / rate,
            "blocks": trial.histogram("block_goodput_bytes_per_s")[1] / rate,
            "timed blocks": median(trial.series("timed_block_goodput_bytes_per_s")[1:]) / rate,
            "delivery": median(trial.series("interval_delivery_bytes_per_s")) / rate,
            "transfer": transfer.one("transfer_ns") / 1e9 * rate / carried,
            "time ratio": trial.one("transfer_time_ratio") / 2,
            "round trip": trial.one("tcp_rtt_ns") / 1e9 / round_trip_s,
            "least": trial.one("tcp_rtt_min_ns") / 1e9 / round_trip_s,
            "rounds": rtt_s / round_trip_s,
            "by window": trial.one("congestion_window_limited_ratio"),
        }
        # The window opens in two round trips of 25 to 45; the line promises half a millisecond
        # each way, of ten.
        held = all(0.85 <= ratio <= 1.15 for ratio in seen.values())
        return ", ".join(f"{name} {ratio:.3f}" for name, ratio in seen.items()), held

    attempt("40 segments in 20 ms", once)


@pytest.mark.truth("net.throughput", "buffer_delay_ratio", "tcp_rtt_min_ns", "tcp_rtt_ns")
def test_a_round_trip_that_doubles_is_a_buffer_that_fills() -> None:
    def once() -> tuple[str, bool]:
        with real_time(inherited=True), Wire(both_ways(delay_ns=DELAY_MS * MS)) as wire:
            limit_window(wire)

            def slow_down(near: Controlled, far: Controlled) -> None:
                time.sleep(0.4)
                wire.set(*both_ways(delay_ns=2 * DELAY_MS * MS))

            params = {"duration_ns": 1000 * MS, "warmup_ns": 0}
            trial = measure("net.throughput", params, path=wire, meanwhile=slow_down)
        seen = {
            "round trip": trial.one("tcp_rtt_ns") / MS / (4 * DELAY_MS),
            "least": trial.one("tcp_rtt_min_ns") / MS / (2 * DELAY_MS),
            "increase": trial.one("buffer_delay_ratio"),
        }
        held = all(abs(ratio - 1) <= 0.15 for ratio in seen.values())
        return ", ".join(f"{name} {ratio:.3f}" for name, ratio in seen.items()), held

    attempt("20 ms, then 40 ms", once)


@pytest.mark.truth("net.throughput", "block_goodput_cv_ratio", "block_goodput_bytes_per_s")
@pytest.mark.truth("net.throughput", "goodput_bytes_per_s")
def test_a_rate_that_halves_has_its_variation() -> None:
    bits_per_s, seconds = 40e6, 1.2
    queue = {"delay_ns": 2 * MS, "limit_packets": 60}

    def once() -> tuple[str, bool]:
        paths = both_ways(rate_bits_per_s=bits_per_s, **queue)
        with real_time(inherited=True), Wire(paths) as wire:
            wire.warm()

            def halve(near: Controlled, far: Controlled) -> None:
                time.sleep(seconds / 2)
                wire.set(*both_ways(rate_bits_per_s=bits_per_s / 2, **queue))

            params = {
                "duration_ns": int(seconds * 1e9),
                "warmup_ns": 0,
                "block_bytes": 64 << 10,
            }
            trial = measure("net.throughput", params, path=wire, meanwhile=halve)
        full = bits_per_s / 8 * MSS / FRAME_BYTES
        # Two thirds of the blocks have the full rate, one third has half of it: a mean of 5/6, and
        # a standard deviation of sqrt(1/18) of the full rate. Of the time each is a half.
        seen = {
            "variation": (trial.one("block_goodput_cv_ratio"), (1 / 18) ** 0.5 * 6 / 5, 0.4),
            "blocks": (trial.histogram("block_goodput_bytes_per_s")[1], 5 / 6 * full, 0.1),
            "goodput": (trial.one("goodput_bytes_per_s"), 3 / 4 * full, 0.1),
        }
        held = all(abs(value / wanted - 1) <= part for value, wanted, part in seen.values())
        return ", ".join(f"{name} {v[0]:.4g} of {v[1]:.4g}" for name, v in seen.items()), held

    attempt("40 Mbit/s, then 20 Mbit/s", once)


AGAIN = ("retransmits_count", "retransmitted_ratio", "tcp_efficiency_ratio")


@pytest.mark.truth("net.throughput", *AGAIN, "interval_retransmits_count")
def test_every_segment_that_a_filter_drops_is_sent_again() -> None:
    """Every hundredth full segment is dropped, by count."""

    def once() -> tuple[str, bool]:
        with Wire(both_ways(delay_ns=2 * MS)) as wire:
            wire.warm()
            veth.call([*wire.far, "nft", "add", "table", "ip", "lossy"])
            chain = "{ type filter hook input priority 0 ; }"
            veth.call([*wire.far, "nft", f"add chain ip lossy input {chain}"])
            rule = "tcp dport != 0 ip length >= 1400 numgen inc mod 100 == 99 counter drop"
            veth.call([*wire.far, "nft", f"add rule ip lossy input {rule}"])
            params = {"duration_ns": 600 * MS, "warmup_ns": 0, "interval_ns": 50 * MS}
            trial = measure("net.throughput", params, path=wire)
            words = veth.call([*wire.far, "nft", "list", "table", "ip", "lossy"]).split()
        dropped = int(words[words.index("packets") + 1])
        again, share = trial.one("retransmits_count"), trial.one("retransmitted_ratio")
        assert trial.one("tcp_efficiency_ratio") == pytest.approx(1 - share)
        assert sum(trial.series("interval_retransmits_count")) <= again
        carried = trial.one("sent_bytes")
        text = f"{again:.0f} sent again, {dropped} dropped, share {share:.4f}"
        # A lost probe of the tail may be sent for nothing; the last interval is not complete.
        held = dropped <= again <= 1.1 * dropped + 2
        held &= abs(share * (carried + again * MSS) / (again * MSS) - 1) <= 0.05
        held &= sum(trial.series("interval_retransmits_count")) >= 0.7 * again
        return text, held

    attempt("one of a hundred segments", once)


@pytest.mark.parametrize("limiter", ["receiver", "sender"])
@pytest.mark.truth("net.throughput", "receiver_limited_ratio", "sender_limited_ratio")
def test_what_limits_tcp_is_named(limiter: str) -> None:
    """A small buffer at one of the ends, and a path that carries much more."""
    params: dict[str, Any] = {"duration_ns": 700 * MS, "warmup_ns": 0}

    def once() -> tuple[str, bool]:
        with Wire(both_ways(delay_ns=DELAY_MS * MS)) as wire:
            wire.warm()
            if limiter == "receiver":
                params["receive_buffer_bytes"] = 16_384
            else:
                size = "net.ipv4.tcp_wmem=4096 16384 16384"
                veth.call([*wire.near, "sysctl", "-q", "-w", size])
            trial = measure("net.throughput", params, path=wire)
        shares = {
            name: trial.one(f"{name}_limited_ratio")
            for name in ("receiver", "sender", "congestion_window")
        }
        assert sum(shares.values()) == pytest.approx(1)
        # Until the window has opened that limits too, and so it does between two limits.
        text = ", ".join(f"{name} {share:.3f}" for name, share in shares.items())
        other = shares["sender" if limiter == "receiver" else "receiver"]
        return text, shares[limiter] >= 0.25 and other <= 0.02

    attempt(f"limited by the {limiter}", once)


BUSY: dict[str, dict[str, Any]] = {
    "net.throughput": {"warmup_ns": 0},
    "load.net": {},
    "load.packets": {},
}


@pytest.mark.parametrize("benchmark", BUSY)
@pytest.mark.truth("net.throughput", "used_cpus")
@pytest.mark.truth("load.net", "used_cpus")
@pytest.mark.truth("load.packets", "used_cpus")
def test_each_side_uses_the_cpu_time_that_the_kernel_accounts(benchmark: str) -> None:
    seconds = 1.2
    params = {**BUSY[benchmark], "duration_ns": int(seconds * 1e9)}

    def once() -> tuple[str, bool]:
        with veth.pair() as path:
            trial = measure(benchmark, params, path=path)
        told = trial.by("used_cpus", "side")
        accounted = {side: cpu_s / seconds for side, cpu_s in trial.sides_cpu_s.items()}
        # The account has the start of the program, the session and the warm-up too.
        held = all(-0.03 <= accounted[side] - told[side] <= 0.25 for side in ("near", "far"))
        held &= all(told[side] >= 0.6 * accounted[side] for side in ("near", "far"))
        return f"told {told}, accounted {accounted}", held

    attempt(f"CPU time of {benchmark}", once, contends=True)


@pytest.mark.parametrize(
    ("benchmark", "rate", "unit"),
    [
        ("load.net", {"rate_bits_per_s": 40e6}, "bytes"),
        pytest.param(
            "load.net",
            {"rate_bits_per_s": 20e6, "protocol": "udp"},
            "bytes",
            marks=pytest.mark.truth("load.net", "loss_ratio"),
        ),
        ("load.packets", {"packets_per_s": 4000}, "packets"),
    ],
)
@pytest.mark.truth("load.net", "load_bytes_per_s", "sent_bytes_per_s", "interval_bytes_per_s")
@pytest.mark.truth("load.net", "load_intensity_ratio", "interval_intensity_ratio")
@pytest.mark.truth("load.packets", "load_packets_per_s", "sent_packets_per_s")
@pytest.mark.truth("load.packets", "interval_packets_per_s", "interval_intensity_ratio")
@pytest.mark.truth("load.packets", "load_intensity_ratio", "loss_ratio")
def test_a_set_rate_is_that_of_every_interval(
    benchmark: str, rate: dict[str, Any], unit: str
) -> None:
    """At three quarters of a rate; of datagrams a filter drops every tenth."""
    params = {**rate, "intensity_ratio": 0.75, "duration_ns": 700 * MS}
    full = rate.get("packets_per_s") or rate["rate_bits_per_s"] / 8
    is_udp = benchmark == "load.packets" or rate.get("protocol") == "udp"
    kept = 0.9 if is_udp else 1.0

    def once() -> tuple[str, bool]:
        with veth.pair() as path:
            if is_udp:
                path.drop_runs("far", 1, 10)
            trial = measure(benchmark, params, path=path, favoured=favoured)
        inner = trial.series(f"interval_{unit}_per_s")[1:-1]
        levels = trial.series("interval_intensity_ratio")[1:-1]
        seen = {
            "received": trial.one(f"load_{unit}_per_s") / (0.75 * full * kept),
            "sent": trial.one(f"sent_{unit}_per_s") / (0.75 * full),
            "level": trial.one("load_intensity_ratio") / 0.75,
            "intervals": median(inner) / (0.75 * full * kept),
            "levels": median(levels) / 0.75,
        }
        held = len(inner) >= 4 and all(abs(value - 1) <= 0.03 for value in seen.values())
        if is_udp:
            seen["loss"] = trial.one("loss_ratio")
            held &= abs(seen["loss"] - 0.1) <= 0.005
        return ", ".join(f"{name} {value:.3f}" for name, value in seen.items()), held

    with group() as favoured:
        attempt(f"{benchmark} at three quarters", once)
