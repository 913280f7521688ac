"""Machines that may stand on one physical host: hints, never claims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from nephoscope.core.records import dataclass

BY_PROVIDER = "the provider names the same host"
BY_IDENTITY = "they have the same machine identifier, which an image also copies"


class PlacedMachine(Protocol):
    """What is read of a measurement of a machine; see `observations.Observation`."""

    @property
    def instance_type(self) -> str:
        """Returns the type, with its provider."""

    @property
    def machine(self) -> str:
        """Returns the identity of the machine."""

    @property
    def target(self) -> str:
        """Returns the name of the target."""

    @property
    def host(self) -> str:
        """Returns the hash of the machine's own identifier; '' where hidden."""

    @property
    def placed_on(self) -> str:
        """Returns the physical host that the provider names; ''."""


@dataclass(frozen=True, slots=True)
class SharedHost:
    """Machines that may stand on one host. hint: why one may think so."""

    hint: str
    machines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HostHints:
    """Hints on the physical hosts of an instance type's machines.

    hinted: machines of which the provider names the host; hosts: distinct ones among those.
    Machines of one host are possibly dependent, so that `hosts` is the least number of independent
    draws among the hinted ones.
    """

    instance_type: str
    machines: int
    hinted: int
    hosts: int
    shared: tuple[SharedHost, ...]


def host_hints(observations: Sequence[PlacedMachine]) -> tuple[HostHints, ...]:
    """Returns the hints of each type; of observations that have a machine."""
    by_type: dict[str, dict[str, PlacedMachine]] = {}
    for entry in observations:
        by_type.setdefault(entry.instance_type, {}).setdefault(entry.machine, entry)
    return tuple(
        HostHints(
            name,
            len(machines),
            sum(bool(entry.placed_on) for entry in machines.values()),
            len({entry.placed_on for entry in machines.values() if entry.placed_on}),
            tuple(_shared(machines.values())),
        )
        for name, machines in sorted(by_type.items())
    )


def _shared(machines: Iterable[PlacedMachine]) -> Iterator[SharedHost]:
    of_each = list(machines)
    for hint, facts in (
        (BY_PROVIDER, [entry.placed_on for entry in of_each]),
        (BY_IDENTITY, [entry.host for entry in of_each]),
    ):
        groups: dict[str, list[str]] = {}
        for entry, fact in zip(of_each, facts, strict=True):
            if fact:
                groups.setdefault(fact, []).append(entry.target)
        for names in groups.values():
            if len(names) > 1:
                yield SharedHost(hint, tuple(sorted(names)))


def sentences(hints: Iterable[HostHints]) -> Iterator[str]:
    """Yields a sentence on each type of which several machines may stand on one host."""
    for entry in hints:
        if entry.hosts < entry.hinted:
            yield (
                f"{entry.instance_type}: the provider names the host of {entry.hinted} of "
                f"{entry.machines} machines, {entry.hosts} distinct ones; machines of one host are "
                "possibly dependent (a hint, not a proof)."
            )
