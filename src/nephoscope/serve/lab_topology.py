"""The lab of a run as its plan describes it: hosts, switches, links and what holds on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from nephoscope.core import units
from nephoscope.core.errors import UnknownName
from nephoscope.core.naming import as_number, clean, level_name
from nephoscope.httpd.responses import RenderedResponse
from nephoscope.measure.lab import files
from nephoscope.measure.lab.network.layout import Layout, lay_out
from nephoscope.measure.lab.topology import Direction, Geo, HostSpec, Topology
from nephoscope.serve.answers import document
from nephoscope.store import Store

HUB = "sites"
"""Name of the links between the sites of a lab."""

_UNITS = {
    "delay": ("ns", 1e9),
    "jitter": ("ns", 1e9),
    "rate": ("bits_per_s", 1.0),
    "ingress": ("bits_per_s", 1.0),
    "loss": ("ratio", 1.0),
    "duplicate": ("ratio", 1.0),
    "memory": ("bytes", 1.0),
    "read": ("bytes_per_s", 1.0),
    "write": ("bytes_per_s", 1.0),
}
"""Last word of a condition's path -> unit, and factor from what the plan stores."""


@dataclass(frozen=True, slots=True)
class LinkDirection:
    """What holds on a link in one direction; rate_bits_per_s: None without a limit."""

    rate_bits_per_s: float | None
    delay_ns: int
    jitter_ns: int
    loss_ratio: float
    duplicate_ratio: float


@dataclass(frozen=True, slots=True)
class LabLink:
    """A link between two hosts or switches. up: away from the first end; down: toward it."""

    name: str
    between: tuple[str, str]
    up: LinkDirection
    down: LinkDirection


@dataclass(frozen=True, slots=True)
class LabHost:
    """A host. limits: those of its CPUs, memory and disk, in words; empty without any."""

    name: str
    platform: str
    addresses: tuple[str, ...]
    limits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LabTopology:
    """The lab of a run. varied: condition that the plan varies -> its levels, in words."""

    run: str
    lab: str
    hosts: tuple[LabHost, ...]
    switches: tuple[str, ...]
    links: tuple[LabLink, ...]
    varied: Mapping[str, tuple[str, ...]]


def lab(store: Store, run: str) -> RenderedResponse:
    """Returns the lab of a run. UnknownName where its plan makes none, UsageError where the plan
    cannot be read."""
    stored = store.open(run)
    values = stored.manifest.plan.get("lab")
    if not isinstance(values, dict):
        raise UnknownName(
            f"The plan of run {run} describes no lab.", "See /api/v1/runs?kind=lab for others."
        )
    return document(topology_of(run, files.from_values(values), stored.manifest.settings))


def topology_of(run: str, topology: Topology, settings: Any) -> LabTopology:
    """Returns the record of a topology. settings: of the run's manifest."""
    laid = lay_out(topology)
    links = [
        LabLink(
            cable.name,
            cable.spec.between,
            _direction(cable.spec.direction("up")),
            _direction(cable.spec.direction("down")),
        )
        for cable in laid.cables
    ]
    if topology.geo is not None:
        links += _between_sites(topology.geo)
    hosts = tuple(_host(laid, name, spec) for name, spec in topology.hosts.items())
    return LabTopology(run, topology.name, hosts, laid.switches, tuple(links), _varied(settings))


def _direction(own: Direction) -> LinkDirection:
    return LinkDirection(
        own.rate_bits_per_s, own.delay_ns, own.jitter_ns, own.loss_ratio, own.duplicate_ratio
    )


def _between_sites(geo: Geo) -> Iterator[LabLink]:
    for first, second in combinations(geo.sites, 2):
        up, down = (
            LinkDirection(
                None,
                round((geo.delay_s(*ends) or 0.0) * 1e9),
                round(geo.jitter_s * 1e9),
                geo.loss_ratio,
                0.0,
            )
            for ends in ((first, second), (second, first))
        )
        yield LabLink(HUB, (first, second), up, down)


def _host(laid: Layout, name: str, spec: HostSpec) -> LabHost:
    addresses = tuple(nic.address for nic in laid.nics[name] if nic.address)
    return LabHost(name, spec.platform, addresses, tuple(_limits(spec)))


def _limits(spec: HostSpec) -> Iterator[str]:
    if spec.cpu.reservation is not None:
        yield f"{units.format_value(spec.cpu.reservation.cpus, 'ratio')} of a CPU reserved"
    if spec.cpu.cap is not None:
        yield f"at most {units.format_number(spec.cpu.cap)} CPUs"
    if spec.cpu.cpus:
        yield f"CPU {', '.join(map(str, spec.cpu.cpus))}"
    if spec.memory_bytes is not None:
        yield f"memory {units.format_value(spec.memory_bytes, 'bytes')}"
    for word, rate in (
        ("read", spec.disk.read_bytes_per_s),
        ("write", spec.disk.write_bytes_per_s),
    ):
        if rate is not None:
            yield f"disk {word} {units.format_value(rate, 'bytes_per_s')}"


def _varied(settings: Any) -> dict[str, tuple[str, ...]]:
    """Conditions with more than one level among the settings of a run."""
    levels: dict[str, dict[str, None]] = {}
    for setting in settings:
        conditions = setting.get("conditions")
        for path, level in conditions.items() if isinstance(conditions, dict) else ():
            levels.setdefault(clean(path), {})[_level(path, level)] = None
    return {path: tuple(words) for path, words in levels.items() if len(words) > 1}


def _level(path: str, level: Any) -> str:
    unit, factor = _UNITS.get(path.rpartition(".")[2], ("", 1.0))
    number = as_number(level)
    if unit and number is not None:
        return units.format_value(number * factor, unit)
    return clean(level_name(level))
