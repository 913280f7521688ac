"""What neighbours can take from one another: of each resource, who takes it and who misses it.

The program that takes (the aggressor) is never the one that misses (the victim): two copies of one
program may share pages, or march in step, and then show their likeness and not the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Any

from nephoscope import catalog
from nephoscope.catalog import Catalog
from nephoscope.core.reading.sentences import unknown_name
from nephoscope.core.records import dataclass

IDLE = "idle"
"""The neighbour that is there and does nothing: what it seems to take is the experiment's noise."""

NONE = "none"
"""Level of the factor `resource` at which no neighbour does anything: the baseline trials."""

INTENSITY = "intensity_ratio"
"""Parameter of every load: the part of what it reaches alone, 0..1."""


@dataclass(frozen=True, slots=True)
class ResourceLoad:
    """The load that takes a resource."""

    benchmark: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResourceVictim:
    """The benchmark that misses a resource, and the metric that shows it."""

    benchmark: str
    metric: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SharedResource:
    """One thing that is shared. words: its name in sentences. victim: None if nobody misses it.

    network: load and victim send to a far side, or receive from it.
    """

    name: str
    words: str
    aggressor: ResourceLoad
    victim: ResourceVictim | None
    network: bool = False

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """Returns what a catalogue has to have for it."""
        own = (self.victim.benchmark,) if self.victim else ()
        return (self.aggressor.benchmark, *own)


WORDS: Mapping[str, str] = {
    "cpu": "CPU time",
    "memory": "memory bandwidth",
    "cache": "last-level cache",
    "disk_read": "disk reads",
    "disk_write": "disk writes",
    "fsync": "writes made durable",
    "net_send": "network sending",
    "net_receive": "network receiving",
    "packets": "small packets",
    "switches": "context switches",
}
"""Name of each resource in sentences, in the order in which results show them."""

_IDLE_OF = "cpu"
"""The idle neighbour is the aggressor for this resource, at intensity 0."""

NAMES: tuple[str, ...] = tuple(WORDS)
"""The resources that can be taken away."""


class _Resources(Mapping[str, SharedResource]):
    """Every resource by its name, in the order of `WORDS`; `idle` comes last.

    Aggressors and victims are those that benchmarks declare (`aggressor_for`, `victim_for`); they
    are read from the catalogue when one is looked up first.
    """

    @cached_property
    def _table(self) -> Mapping[str, SharedResource]:
        benchmarks = catalog.load().benchmarks.values()
        aggressors = {
            each.resource: (spec, ResourceLoad(spec.id, each.params))
            for spec in benchmarks
            for each in spec.aggressor_for
        }
        victims = {
            each.resource: ResourceVictim(spec.id, each.metric, each.params)
            for spec in benchmarks
            for each in spec.victim_for
        }
        table = {}
        for name, words in WORDS.items():
            spec, aggressor = aggressors[name]
            table[name] = SharedResource(
                name, words, aggressor, victims[name], network=spec.two_sided
            )
        busy = table[_IDLE_OF].aggressor
        idle = replace(busy, params={**busy.params, INTENSITY: 0.0})
        return {**table, IDLE: SharedResource(IDLE, "nothing", idle, None)}

    def __getitem__(self, name: str) -> SharedResource:
        return self._table[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*NAMES, IDLE))

    def __len__(self) -> int:
        return len(NAMES) + 1


RESOURCES = _Resources()


def resource(name: str) -> SharedResource:
    """The resource of that name. UnknownName when there is none."""
    if name not in RESOURCES:
        raise unknown_name(f"There is no resource '{name}'", name, RESOURCES, "There are")
    return RESOURCES[name]


def missing(needed: SharedResource, catalog: Catalog) -> tuple[str, ...]:
    """Returns what the resource needs and this catalogue does not have; empty when all is there."""
    return tuple(name for name in needed.benchmarks if name not in catalog.benchmarks)
