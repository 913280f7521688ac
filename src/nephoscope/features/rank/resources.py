"""Resource that a metric is about, and the resources that each application domain needs.

The shares are assumptions, stated in docs/explanation/ranking.md; `--weight` replaces them by the
user's own.
"""

from __future__ import annotations

from collections.abc import Mapping

from nephoscope import catalog
from nephoscope.catalog.meaning import Domain as Application
from nephoscope.catalog.meaning import Resource
from nephoscope.core.model import Factors
from nephoscope.core.records import dataclass
from nephoscope.report import wording

CPU, MEMORY, CACHE, READ, WRITE = "cpu", "memory", "cache", "read", "write"
NETWORK, SCHEDULER, KERNEL, SEVERAL = "network", "scheduler", "kernel", "several"
DATABASE, WEB = "database", "web"

RESOURCES = (CPU, MEMORY, CACHE, READ, WRITE, NETWORK, SCHEDULER, KERNEL, SEVERAL, DATABASE, WEB)

_OF_DOMAIN: Mapping[Application, str] = {
    Application.WEB: WEB,
    Application.KEY_VALUE: DATABASE,
    Application.DATABASE: DATABASE,
}
"""An application counts as such, whatever it uses of the machine."""

_OF_RESOURCE: Mapping[Resource, str] = {
    Resource.CPU: CPU,
    Resource.CACHE: CACHE,
    Resource.MEMORY: MEMORY,
    Resource.DISK_WRITE: WRITE,
    Resource.NETWORK: NETWORK,
    Resource.SCHEDULER: SCHEDULER,
    Resource.KERNEL: KERNEL,
    Resource.SEVERAL: SEVERAL,
}


@dataclass(frozen=True, slots=True)
class WorkDomain:
    """An application domain. shares: of its time by resource; empty: all that were measured.

    instead: shares for a host on which the first ones were not measured.
    """

    name: str
    shares: Mapping[str, float]
    instead: Mapping[str, float]


DOMAINS = (
    WorkDomain("CPU-bound", {CPU: 1}, {}),
    WorkDomain("memory-bound", {MEMORY: 1}, {}),
    WorkDomain("cache-friendly", {CACHE: 1}, {}),
    WorkDomain("read-heavy", {READ: 1}, {}),
    WorkDomain("write-heavy", {WRITE: 1}, {}),
    WorkDomain("database", {DATABASE: 1}, {WRITE: 0.5, READ: 0.25, CPU: 0.25}),
    WorkDomain("web", {WEB: 1}, {}),
    WorkDomain("mixed", {}, {}),
)


def resource_of(benchmark: str, metric: str, factors: Factors) -> str:
    """Returns the resource that a metric is about.

    '' for what is about none, for a mixture of reads and writes, and for benchmarks that the
    catalogue does not know.
    """
    spec = catalog.spec_of(benchmark)
    if spec is None or spec.resource is None:
        return ""
    if spec.domain in _OF_DOMAIN:
        return _OF_DOMAIN[spec.domain]
    if spec.resource is Resource.DISK:
        text = " ".join(map(str, (*factors.values(), metric)))
        reads, writes = ("read" in text), ("write" in text)
        return READ if reads and not writes else WRITE if writes and not reads else ""
    return _OF_RESOURCE.get(spec.resource, "")


def parameter_of(benchmark: str) -> str:
    """Returns the heading of a benchmark's rows."""
    spec, group = catalog.spec_of(benchmark), wording.group_of(benchmark)
    of_caches = spec is not None and spec.resource is Resource.CACHE
    if of_caches and group == "Memory":
        return "Cache"
    return "Applications" if benchmark.startswith("app.") else group
