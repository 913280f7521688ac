"""A token bucket that the lab sets: burst rate, bucket size and sustained rate within 5 %."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest
from tests import hardware
from tests.hardware import Feature

from nephoscope import catalog
from nephoscope.features.network.result import NetworkPaths
from nephoscope.measure import runs
from nephoscope.measure.plans.files.load import from_values
from nephoscope.results import analyse_run
from nephoscope.store import Store

pytestmark = [pytest.mark.slow, hardware.needs(Feature.ROOT, os.geteuid() == 0)]

PEAK_BITS_PER_S, SUSTAINED_BITS_PER_S, BUCKET_BYTES = 100e6, 20e6, 6e6
FRAME, PAYLOAD = 1514, 1448


def test_the_three_parameters_of_a_token_bucket(tmp_path: Path) -> None:
    ends = {"on": "client", "peer": "server"}
    times = {"warmup_ns": 0, "duration_ns": 3_000_000_000, "interval_ns": 50_000_000}
    values = {
        "name": "bucket",
        "warmup": 0,
        "repeat": {"min": 1, "max": 1},
        "lab": {
            "version": 1,
            "name": f"bucket{uuid.uuid4().hex[:4]}",
            "network": "10.94.0.0/24",
            "hosts": {"client": {}, "server": {}},
            "switches": {"lan": {}},
            "links": {
                "client-port": {"between": ["client", "lan"], "rate": "100Mbit/s"},
                "server-port": {"between": ["server", "lan"], "rate": "20Mbit/s", "burst": "6MB"},
            },
        },
        "targets": [{"name": "client", "kind": "lab"}, {"name": "server", "kind": "lab"}],
        "benchmarks": [{"benchmark": "net.throughput", **ends, "params": times}],
    }
    plan = from_values(values, catalog.load(), lambda _: "bucket: ")
    network = analyse_run.build(runs.execute(plan, Store(tmp_path))).part(NetworkPaths)
    assert network is not None
    bucket = network.paths[0].analysis.token_bucket
    assert bucket is not None
    peak = bucket.burst_bytes_per_s * 8 * FRAME / PAYLOAD
    assert peak == pytest.approx(PEAK_BITS_PER_S, rel=0.05)
    assert bucket.frames_sustained_bits_per_s == pytest.approx(SUSTAINED_BITS_PER_S, rel=0.05)
    assert bucket.frames_bucket_bytes == pytest.approx(BUCKET_BYTES, rel=0.05)
