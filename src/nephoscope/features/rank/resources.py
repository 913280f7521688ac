"""Resource that a metric is about, and the resources that each application domain needs.

The shares are assumptions, stated in docs/explanation/ranking.md; `--weight` replaces them by the
user's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nephoscope.core.model import Factors
from nephoscope.report import wording

CPU, MEMORY, CACHE, READ, WRITE = "cpu", "memory", "cache", "read", "write"
DATABASE, WEB = "database", "web"

RESOURCES = (CPU, MEMORY, CACHE, READ, WRITE, DATABASE, WEB)

_BENCHMARKS: Mapping[str, str] = {
    CPU: "cpu.pi cpu.hash app. sysbench.cpu openssl john 7zip xz c-ray stress-ng.cpu",
    CACHE: "mem.cache stress-ng.cache",
    MEMORY: "mem. mbw likwid-bench perf.memcpy stress-ng.stream stress-ng.vm sysbench.memory",
    WRITE: "disk.sync disk.files postmark dbench",
    DATABASE: "db. sysbench.oltp kv. redis-benchmark memtier",
    WEB: "http. ab wrk h2load httperf siege",
}
"""Resource -> benchmarks that are about it; a name that ends with a dot is that of a group."""

_BY_OPERATION = frozenset(
    {"disk.io", "disk.records", "sysbench.fileio", "bonnie", "dd", "fio", "iozone"}
)
"""Benchmarks that read or write, as a factor or their metric states."""


@dataclass(frozen=True, slots=True)
class Domain:
    """An application domain. shares: of its time by resource; empty: all that were measured.

    instead: shares for a host on which the first ones were not measured.
    """

    name: str
    shares: Mapping[str, float]
    instead: Mapping[str, float]


DOMAINS = (
    Domain("CPU-bound", {CPU: 1}, {}),
    Domain("memory-bound", {MEMORY: 1}, {}),
    Domain("cache-friendly", {CACHE: 1}, {}),
    Domain("read-heavy", {READ: 1}, {}),
    Domain("write-heavy", {WRITE: 1}, {}),
    Domain("database", {DATABASE: 1}, {WRITE: 0.5, READ: 0.25, CPU: 0.25}),
    Domain("web", {WEB: 1}, {}),
    Domain("mixed", {}, {}),
)


def resource_of(benchmark: str, metric: str, factors: Factors) -> str:
    """Returns the resource that a metric is about; '' where no domain asks for it."""
    if benchmark in _BY_OPERATION:
        text = " ".join(map(str, (*factors.values(), metric)))
        reads, writes = ("read" in text), ("write" in text)
        return READ if reads and not writes else WRITE if writes and not reads else ""
    matching = [
        (len(name), resource)
        for resource, names in _BENCHMARKS.items()
        for name in names.split()
        if (benchmark.startswith(name) if name.endswith(".") else benchmark == name)
    ]
    return max(matching)[1] if matching else ""


def parameter_of(benchmark: str) -> str:
    """Returns the heading of a benchmark's rows."""
    if benchmark == "mem.cache":
        return "Cache"
    return "Applications" if benchmark.startswith("app.") else wording.group_of(benchmark)
