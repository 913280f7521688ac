"""A run of two targets whose path is shaped and loses packets; every sample is set."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope.core.model import Sample, Setting

PLAN = """
name: paths
warmup: 0
repeat: {min: 3, max: 3}
targets: [{name: near}, {name: far}]
benchmarks:
  - {benchmark: net.throughput, on: near, peer: far, params: {duration_ns: 4s}}
  - {benchmark: net.rtt, on: near, peer: far, params: {rate_per_s: 100}}
"""
UP = {"direction": "up"}
BURST, SUSTAINED = 12.5e6, 2.5e6


def sampled(setting: Setting, number: int, target: str) -> Sequence[Sample]:
    if setting.benchmark == "net.throughput":
        return [
            *(
                Sample(
                    "interval_goodput_bytes_per_s",
                    BURST if at < 10 else SUSTAINED,
                    at_ns=(at + 1) * 100_000_000,
                    factors=UP,
                )
                for at in range(40)
            ),
            Sample("goodput_bytes_per_s", SUSTAINED, factors=UP),
            Sample("sent_bytes", 20e6, factors=UP),
            Sample("retransmitted_ratio", 0.01, factors=UP),
        ]
    return [
        Sample("rtt_ns", 300e6, 80),
        Sample("rtt_sent_ns", 300e6, 80),
        Sample("sent_count", 100),
        Sample("returned_count", 80),
        Sample("loss_ratio", 0.2, factors={"direction": "both"}),
        Sample("jitter_ns", 80e6, factors=UP),
        Sample("jitter_ns", 10e6, factors={"direction": "down"}),
    ]
