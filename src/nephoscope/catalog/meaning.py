"""What a benchmark is about: resource, kind of application, loop, role beside neighbours, titles.

The words are those of crates/wire/src/meaning.rs. Whatever ranks, compares or combines benchmarks
reads these attributes, and no list of their names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any

from nephoscope.core.records import dataclass


class Resource(StrEnum):
    """What of a machine mainly decides the results of a benchmark, or what a load occupies."""

    CPU = "cpu"
    """Speed at which CPUs execute instructions: arithmetic, hashing, compression."""
    CACHE = "cache"
    """Caches of the CPUs."""
    MEMORY = "memory"
    """Bandwidth and latency of main memory."""
    DISK = "disk"
    """Files and disks: reads or writes, as the setting (`operation`) or the metric states."""
    DISK_WRITE = "disk_write"
    """Files and disks: writes, with or without synchronisation."""
    NETWORK = "network"
    """The network and its stack: throughput, round trips, loss."""
    SCHEDULER = "scheduler"
    """Allocation of CPU time: gaps, wake-ups, context switches, messages between tasks."""
    KERNEL = "kernel"
    """Calls into the kernel: system calls, page faults, signals, creation of processes."""
    SEVERAL = "several"
    """Several of these together, as in an index or a suite of applications."""
    NONE = "none"
    """None: facts about a machine, a program of the user, a simulation, a test of the software."""


class Domain(StrEnum):
    """The kind of application that a benchmark is, or whose server it loads."""

    NONE = "none"
    """No application: it measures a resource by itself."""
    WEB = "web"
    """Web servers (HTTP)."""
    KEY_VALUE = "key_value"
    """Stores of keys and values (Redis, memcached)."""
    DATABASE = "database"
    """Databases with tables and transactions."""


class RequestLoop(StrEnum):
    """When the next request, operation or packet is issued."""

    NONE = "none"
    """It issues no requests."""
    CLOSED = "closed"
    """After the response to the previous one."""
    OPEN = "open"
    """At intended times, whether or not earlier requests have responses."""
    ARRIVALS = "arrivals"
    """Closed or open, as its parameter `arrivals` states."""


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """Metrics of a closed loop: number in flight = rate x latency (Little's law).

    depth: the parameter with the number in flight; '' where it is always one.
    """

    rate: str
    latency: str
    depth: str = ""


@dataclass(frozen=True, slots=True)
class Aggressor:
    """A resource that a load takes from its neighbours; params: of one busy program."""

    resource: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Victim:
    """A resource whose loss a benchmark shows by a metric.

    params: of one short trial (0.1 to 0.5 s), so that many rounds fit into a minute.
    """

    resource: str
    metric: str
    params: Mapping[str, Any] = field(default_factory=dict)


class SummarySettings(StrEnum):
    """Which settings of a metric stand in a summary."""

    FIRST = "first"
    """The first one."""
    WHOLE = "whole"
    """The one with the fewest factors, which includes the others."""
    EACH = "each"
    """All of them."""


@dataclass(frozen=True, slots=True)
class Headline:
    """The title of a metric in the summary of a report, and the setting that stands there.

    statistic: of a histogram, such as `p50`. prefer: factor -> level, 'maximum' or 'minimum';
    applied if some setting has it. without: factors that the title states already, or that few
    readers need there.
    """

    title: str
    statistic: str = ""
    prefer: Mapping[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    settings: SummarySettings = SummarySettings.FIRST


def parse_headline(item: Mapping[str, Any] | None) -> Headline | None:
    """Returns a headline from its JSON; None for None."""
    if item is None:
        return None
    settings, without = SummarySettings(item["settings"]), tuple(item.get("without", ()))
    return Headline(**{**item, "settings": settings, "without": without})


def parse_meaning(item: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the attributes of a benchmark that its JSON states, by the names of their fields.

    Raises ValueError for a word that is none.
    """
    return {name: parse(item[name]) for name, parse in _PARSED.items() if name in item}


_PARSED: Mapping[str, Callable[[Any], Any]] = {
    "resource": Resource,
    "domain": Domain,
    "request_loop": RequestLoop,
    "closed_loops": lambda items: tuple(ClosedLoop(**item) for item in items),
    "aggressor_for": lambda items: tuple(Aggressor(**item) for item in items),
    "victim_for": lambda items: tuple(Victim(**item) for item in items),
}
