"""What neighbours can take from one another: of each resource, who takes it and who misses it.

The program that takes (the aggressor) is never the one that misses (the victim): two copies of one
program may share pages, or march in step, and then show their likeness and not the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nephoscope.catalog import Catalog
from nephoscope.core.reading.sentences import unknown_name

IDLE = "idle"
"""The neighbour that is there and does nothing: what it seems to take is the experiment's noise."""

NONE = "none"
"""Level of the factor `resource` at which no neighbour does anything: the quiet trials."""

INTENSITY = "intensity_ratio"
"""Parameter of every load: the part of what it reaches alone, 0..1."""


@dataclass(frozen=True, slots=True)
class Aggressor:
    """The load that takes a resource."""

    benchmark: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Victim:
    """The benchmark that misses a resource, and the metric that tells.

    params: of one short trial (0.1 to 0.5 s), so that many rounds fit into a minute.
    """

    benchmark: str
    metric: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Resource:
    """One thing that is shared. words: its name in sentences. victim: None if nobody misses it.

    network: load and victim send to a far side, or receive from it.
    """

    name: str
    words: str
    aggressor: Aggressor
    victim: Victim | None
    network: bool = False

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """Returns what a catalogue has to have for it."""
        own = (self.victim.benchmark,) if self.victim else ()
        return (self.aggressor.benchmark, *own)


_MIB = 1 << 20

# One thread each, so that a neighbour is one busy program and k neighbours are k of them.
_TABLE: tuple[Resource, ...] = (
    Resource(
        "cpu",
        "CPU time",
        Aggressor("load.cpu", {"threads": 1}),
        Victim("cpu.pi", "pi_digits_per_s", {"threads": 1, "digits": 10_000, "repeats": 2}),
    ),
    Resource(
        "memory",
        "memory bandwidth",
        Aggressor("load.memory", {"threads": 1}),
        Victim(
            "mem.stream",
            "stream_bytes_per_s",
            {
                "threads": 1,
                "kernels": ["triad"],
                "types": ["double"],
                "bytes_per_array": 64 * _MIB,
                "laps": 2,
            },
        ),
    ),
    Resource(
        "cache",
        "last-level cache",
        Aggressor("load.cache", {"threads": 1}),
        # Beyond the second level of today's cores, within the last level that they share.
        Victim(
            "mem.latency",
            "load_latency_ns",
            {"lengths": [2 * _MIB], "pages": ["huge"], "time_per_point_ns": 100_000_000},
        ),
    ),
    *(
        Resource(
            f"disk_{operation}",
            f"disk {operation}s",
            Aggressor("load.disk", {"operation": operation}),
            Victim(
                "disk.io",
                "disk_operations_per_s",
                {"operation": f"rand{operation}", "duration_ns": 200_000_000},
            ),
        )
        for operation in ("read", "write")
    ),
    Resource(
        "fsync",
        "writes made durable",
        Aggressor("load.disk", {"operation": "fsync"}),
        Victim("disk.sync", "syncs_per_s", {"operations": 100, "duration_ns": 300_000_000}),
    ),
    *(
        Resource(
            f"net_{direction}",
            words,
            Aggressor("load.net", {"direction": direction}),
            Victim(
                "net.throughput",
                "goodput_bytes_per_s",
                {"direction": way, "duration_ns": 300_000_000, "warmup_ns": 100_000_000},
            ),
            network=True,
        )
        for direction, words, way in (
            ("send", "network sending", "up"),
            ("receive", "network receiving", "down"),
        )
    ),
    Resource(
        "packets",
        "small packets",
        Aggressor("load.packets", {"direction": "send"}),
        Victim(
            "net.rtt",
            "rtt_ns",
            {"rate_per_s": 1000.0, "duration_ns": 300_000_000, "wait_ns": 100_000_000},
        ),
        network=True,
    ),
    Resource(
        "switches",
        "context switches",
        Aggressor("load.switches"),
        Victim("cpu.switch", "switches_per_s", {"duration_ns": 150_000_000}),
    ),
    Resource(IDLE, "nothing", Aggressor("load.cpu", {"threads": 1, INTENSITY: 0.0}), None),
)

RESOURCES: Mapping[str, Resource] = {one.name: one for one in _TABLE}
"""Every resource by its name, in the order in which results show them; `idle` comes last."""

NAMES: tuple[str, ...] = tuple(name for name in RESOURCES if name != IDLE)
"""The resources that can be taken away."""


def resource(name: str) -> Resource:
    """The resource of that name. UnknownName when there is none."""
    if name not in RESOURCES:
        raise unknown_name(f"There is no resource '{name}'", name, RESOURCES, "There are")
    return RESOURCES[name]


def missing(one: Resource, catalog: Catalog) -> tuple[str, ...]:
    """Returns what the resource needs and this catalogue does not have; empty when all is there."""
    return tuple(name for name in one.benchmarks if name not in catalog.benchmarks)
