"""The resource that a metric is about."""

from __future__ import annotations

import pytest

from nephoscope import catalog
from nephoscope.features.rank import resources


@pytest.mark.parametrize(
    ("benchmark", "metric", "factors", "resource"),
    [
        ("cpu.hash", "hash_bytes_per_s", {"algorithm": "sha256"}, "cpu"),
        ("cpu.switch", "switch_latency_ns", {}, "scheduler"),
        ("sys.calls", "call_ns", {}, "kernel"),
        ("netperf.rr", "transactions_per_s", {}, "network"),
        ("unixbench", "index_score", {}, "several"),
        ("phoronix", "higher_is_better_score", {}, "several"),
        ("cyclictest", "latency_mean_ns", {}, "scheduler"),
        ("hackbench", "elapsed_ns", {}, "scheduler"),
        ("blogbench", "read_score", {}, "read"),
        ("crafty", "nodes_per_s", {}, "cpu"),
        ("memtier", "requests_per_s", {}, "database"),
        ("imported.test", "score", {}, ""),
        ("mem.cache", "cache_bytes_per_s", {"operation": "write"}, "cache"),
        ("mem.stream", "stream_bytes_per_s", {}, "memory"),
        ("disk.io", "cached_bytes_per_s", {"operation": "read"}, "read"),
        ("disk.io", "cached_bytes_per_s", {"operation": "write", "engine": "io_uring"}, "write"),
        ("disk.io", "cached_bytes_per_s", {}, ""),
        ("sysbench.fileio", "reads_per_s", {}, "read"),
        ("disk.sync", "sync_latency_p50_ns", {}, "write"),
        ("db.sqlite", "inserts_per_s", {}, "database"),
        ("http.load", "requests_per_s", {}, "web"),
        ("null", "null_ns", {}, ""),
    ],
)
def test_a_metric_is_about_one_resource(
    benchmark: str, metric: str, factors: dict[str, str], resource: str
) -> None:
    assert resources.resource_of(benchmark, metric, factors) == resource


def test_each_domain_needs_known_resources() -> None:
    for domain in resources.DOMAINS:
        assert {*domain.shares, *domain.instead} <= set(resources.RESOURCES)
        assert all(
            abs(sum(shares.values()) - 1) < 1e-9
            for shares in (domain.shares, domain.instead)
            if shares
        )


def test_every_resource_has_a_benchmark() -> None:
    specs = catalog.load().benchmarks
    known = {
        resources.resource_of(spec.id, metric.id, {"operation": operation})
        for spec in specs.values()
        for metric in spec.metrics
        for operation in ("read", "write")
    }
    assert set(resources.RESOURCES) <= known
